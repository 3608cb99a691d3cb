"""The code for tensors on a GPU, on the real server: torch and DLPack between its processes, only the device is `cpu`.

The models are the shipped ones with their weights. Around each lies a few lines that tell it that its instance is on a
GPU, call that device `cpu`, and have the server's tensors say that they are not on the host.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import soundfile

from clients import Client, connect
from embedded import EmbeddedServer

pytestmark = pytest.mark.server

AROUND = """
import served
import triton_python_backend_utils as pb_utils

{device}


class TritonPythonModel(served.TritonPythonModel):
    def initialize(self, args):
        tensor, memory = pb_utils.Tensor, pb_utils.PreferredMemory
        to_dlpack, from_dlpack = tensor.to_dlpack, tensor.from_dlpack

        def given(one):
            pb_utils.Logger.log_info(f"{{one.name()}} taken by DLPack")
            return to_dlpack(one)

        def left(name, array):
            pb_utils.Logger.log_info(f"{{name}} left by DLPack as {{type(array).__module__}}.{{type(array).__name__}}")
            return from_dlpack(name, array)

        tensor.is_cpu, tensor.to_dlpack, tensor.from_dlpack = (lambda one: False), given, staticmethod(left)
        pb_utils.PreferredMemory = lambda kind, number: memory(pb_utils.TRITONSERVER_MEMORY_CPU, number)
        super().initialize(args | {{"model_instance_kind": "GPU", "model_instance_device_id": "0"}})
"""
ON_CPU = 'served.GPU = "cpu"'
DEVICES = {
    "yolo_preprocess": ON_CPU,
    "yolo_postprocess": ON_CPU,
    "whisper_decoder": 'Device = served.Device\nserved.Device = lambda name: Device("cpu")',
}


@pytest.fixture(scope="module")
def server(checkout: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmbeddedServer]:
    shipped, repository = checkout / "model_repository", tmp_path_factory.mktemp("torch") / "repository"
    repository.mkdir()
    for name in ("whisper_features", "whisper_encoder", "yolo", "transcribe", "detect"):
        (repository / name).symlink_to(shipped / name)
    for name, device in DEVICES.items():
        folder = repository / name / "1"
        shutil.copytree(shipped / name, repository / name, ignore=shutil.ignore_patterns("__pycache__"))
        (folder / "model.py").rename(folder / "served.py")
        (folder / "model.py").write_text(AROUND.format(device=device))
    leaves = '\nparameters { key: "device_outputs" value { string_value: "IMAGES" } }\n'
    with (repository / "yolo_preprocess" / "config.pbtxt").open("a") as config:
        config.write(leaves)
    log = repository.parent / "log"
    with EmbeddedServer(
        repository, load=["transcribe", "detect"], cache=checkout / ".cache", log_file=log, cpu_threads=2
    ) as server:
        yield server


def by_dlpack(server: EmbeddedServer) -> set[str]:
    """What went through DLPack, as the models told the server's log."""
    return set(re.findall(r"\w+ (?:taken|left) by DLPack(?: as [\w.]+)?", server.log_file.read_text(errors="replace")))


def test_torch_between_the_servers_processes_gives_the_answers_of_numpy(
    server: EmbeddedServer, served: EmbeddedServer, checkout: Path
) -> None:
    photo, recording = (checkout / "samples" / name for name in ("coffee.jpg", "sense_and_sensibility.flac"))
    samples, _ = soundfile.read(recording, dtype="float32")
    long = np.concatenate([samples, np.zeros(8000, np.float32)] * 5)  # 38 s: exact mode asks the encoder itself

    def answers(client: Client) -> tuple:
        return client.detect(photo), client.transcribe(long, mode="exact")

    with connect(f"grpc://{server.grpc}", timeout_s=120) as client:
        torches = answers(client)
    with connect(f"grpc://{served.grpc}", timeout_s=120) as client:
        assert answers(client) == torches
    assert [one.label for one in torches[0].items] == ["cup"] and torches[1].text.count("John Dashwood") > 2
    assert by_dlpack(server) == {
        "IMAGES left by DLPack as torch.Tensor",
        *(f"{name} taken by DLPack" for name in ("PREDICTIONS", "GEOMETRY", "FEATURES", "MEL", "SPANS", "features")),
        "mel left by DLPack as torch.Tensor",
    }
