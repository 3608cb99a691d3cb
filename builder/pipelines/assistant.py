"""Pipeline `assistant`: a recording, a picture and a question to an answer, streamed.

The transcript and the detections go through the language model: Triton lets no ensemble return a streamed tensor
beside another one. They come with its first response, before the first word of the answer.
"""

from __future__ import annotations

from builder.models.llm import llm as llm_of
from builder.models.prompt import prompt
from builder.models.whisper import whisper as whisper_of
from builder.models.yolo import yolo as yolo_of
from builder.pipeline import Pipeline, Step, yes_or_no
from builder.pipelines.detect import look
from builder.pipelines.transcribe import listen


def assistant(
    whisper: str = "tiny.en", yolo: str = "yolov3-tiny", llm: str = "tiny-llama", together: str = "no"
) -> Pipeline:
    """The pipeline; without AUDIO, without IMAGE, without both, ensembles of their own are derived.

    Sees after it has heard, or at the same time with `together` "yes", for servers on which that is safe (26.05 on):
    docs/decisions/branches-in-turn.md.
    """
    is_together = yes_or_no("assistant", "together", together)
    return Pipeline(
        name="assistant",
        inputs="AUDIO? IMAGE? QUESTION SAMPLING_PARAMETERS? LANGUAGE? TASK? MODE? CONFIDENCE? IOU?",
        outputs="TRANSCRIPT DETECTIONS TEXT FINISH_REASON PROMPT_TOKENS COMPLETION_TOKENS",
        bare_suffix="text",
        steps=[
            *listen(whisper_of(whisper), "TRANSCRIPT=transcript"),
            *look(yolo_of(yolo), "DETECTIONS=detections", after="" if is_together else "transcript"),
            Step(
                model=prompt(),
                input_map="TRANSCRIPT=transcript DETECTIONS=detections QUESTION",
                output_map="MESSAGES=messages",
            ),
            Step(
                model=llm_of(llm),
                input_map="MESSAGES=messages SAMPLING_PARAMETERS TRANSCRIPT=transcript DETECTIONS=detections",
                output_map="TRANSCRIPT DETECTIONS TEXT FINISH_REASON PROMPT_TOKENS COMPLETION_TOKENS",
            ),
        ],
    )
