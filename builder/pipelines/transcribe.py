"""Pipeline `transcribe`: AUDIO -> TRANSCRIPT, SEGMENTS, DETECTED_LANGUAGE.

With streams=yes it is `transcribe_stream`: the same outputs many times, each time with the segments that are new.
"""

from __future__ import annotations

from builder.models.whisper import Whisper
from builder.models.whisper import whisper as whisper_of
from builder.pipeline import Pipeline, Step, yes_or_no


def transcribe(whisper: str = "tiny.en", streams: str = "no") -> Pipeline:
    """The pipeline over a Whisper checkpoint; with `streams` "yes" segments are given as soon as they are done."""
    is_stream = yes_or_no("transcribe", "streams", streams)
    return Pipeline(
        name="transcribe_stream" if is_stream else "transcribe",
        inputs="AUDIO LANGUAGE? TASK? MODE?",
        outputs="TRANSCRIPT SEGMENTS DETECTED_LANGUAGE",
        steps=listen(whisper_of(whisper, streams=is_stream), "TRANSCRIPT SEGMENTS DETECTED_LANGUAGE"),
    )


def listen(models: Whisper, outputs: str) -> list[Step]:
    """The steps from AUDIO to some of the decoder's outputs."""
    return [
        Step(model=models.features, input_map="AUDIO MODE", output_map="WINDOWS=windows MEL=mel SPANS=spans"),
        Step(model=models.encoder, input_map="mel=windows", output_map="features=audio_features"),
        Step(
            model=models.decoder,
            input_map="FEATURES=audio_features MEL=mel SPANS=spans LANGUAGE TASK MODE",
            output_map=outputs,
        ),
    ]
