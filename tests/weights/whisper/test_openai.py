import dataclasses
from pathlib import Path

import numpy as np
import pytest
import torch

from weights.errors import ExportError
from weights.whisper.checkpoint import Checkpoint, reference_network
from weights.whisper.openai import read_openai


def test_a_pt_file_gives_its_arrays_and_dimensions(small: Checkpoint, tmp_path: Path) -> None:
    path = tmp_path / "mine.pt"
    state = reference_network(small).half().state_dict()
    torch.save({"dims": dataclasses.asdict(small.dimensions), "model_state_dict": state}, path)
    read = read_openai(path)
    assert read.source == "mine.pt"
    assert read.dimensions == small.dimensions
    assert set(read.arrays) == set(small.arrays)
    for name, array in small.arrays.items():
        np.testing.assert_allclose(read.arrays[name], array, rtol=1e-3, atol=1e-3, err_msg=name)


def test_a_file_that_is_no_checkpoint_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "mine.pt"
    path.write_bytes(b"not a checkpoint")
    with pytest.raises(ExportError, match="not an openai-whisper checkpoint"):
        read_openai(path)


def test_a_pt_file_that_would_run_code_is_not_run(tmp_path: Path) -> None:
    class Evil:
        def __reduce__(self):
            return (Path.touch, (tmp_path / "was_run",))

    torch.save({"dims": {}, "model_state_dict": Evil()}, tmp_path / "evil.pt")
    with pytest.raises(ExportError, match="not an openai-whisper checkpoint"):
        read_openai(tmp_path / "evil.pt")
    assert not (tmp_path / "was_run").exists()


def test_an_unknown_name_is_answered_with_the_known_ones() -> None:
    with pytest.raises(ExportError, match="enormous: neither a file nor a checkpoint.*tiny.en.*large-v3.*turbo"):
        read_openai("enormous")
