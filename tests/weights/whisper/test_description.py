import dataclasses

import numpy as np
import pytest
from whisper.decoding import DecodingOptions, DecodingTask

from weights.whisper.checkpoint import Checkpoint, reference_network
from weights.whisper.description import describe, tokenizer_of

FLOAT32 = np.dtype("float32")


def with_vocabulary(checkpoint: Checkpoint, n_vocab: int) -> Checkpoint:
    return dataclasses.replace(checkpoint, dimensions=dataclasses.replace(checkpoint.dimensions, n_vocab=n_vocab))


@pytest.mark.parametrize(("n_vocab", "languages"), [(51864, 0), (51865, 99), (51866, 100)])
def test_tokens_are_the_tokenizer_s_of_each_kind_of_checkpoint(small: Checkpoint, n_vocab: int, languages: int) -> None:
    checkpoint = with_vocabulary(small, n_vocab)
    found = describe(checkpoint, FLOAT32)
    tokenizer = tokenizer_of(checkpoint.dimensions)
    assert found["tokens"] == {name: getattr(tokenizer, name) for name in found["tokens"]}
    assert found["tokens"]["timestamp_begin"] + 1501 == n_vocab
    assert found["multilingual"] is (languages > 0)
    assert tokenizer.num_languages == (languages or 99)
    known = zip(tokenizer.all_language_codes, tokenizer.all_language_tokens, strict=True)
    assert found["languages"] == (dict(known) if languages else {})


def test_only_large_v3_knows_cantonese(small: Checkpoint) -> None:
    assert "yue" in describe(small, FLOAT32)["languages"]
    older = describe(with_vocabulary(small, 51865), FLOAT32)
    assert "yue" not in older["languages"]
    assert "cantonese" not in older["language_names"]


def test_suppressed_tokens_are_those_of_the_package_s_decoder(small: Checkpoint) -> None:
    task = DecodingTask(reference_network(small), DecodingOptions(fp16=False, language="en"))
    barred = {*task._get_suppress_tokens(), task.tokenizer.no_timestamps}
    assert describe(small, FLOAT32)["suppress"] == sorted(barred)
