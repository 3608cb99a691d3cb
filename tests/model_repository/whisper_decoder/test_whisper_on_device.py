"""The decoder by torch and IO binding, on the CPU and, where there is one, on a GPU: the words that numpy finds."""

import warnings
from dataclasses import replace

import numpy as np
import pytest
import torch
from test_whisper_loop import WAIT_S, Loop, random_ask, words_of
from whisper_memory import Device, run_graph
from whisper_rules import Said, choose, probability
from whisper_slots import Graphs, Slots
from whisper_track import cut, cut_for_detection

from tests.needs_gpu import MISSING, marks

DEVICES = ["cpu", pytest.param("cuda:0", marks=marks(MISSING))]


@pytest.mark.parametrize("device", DEVICES)
def test_every_word_is_the_same_whether_a_request_s_arrays_are_numpy_s_or_torch_s(multilingual, device: str) -> None:
    rng = np.random.default_rng(0)
    asks = [random_ask(multilingual, rng, frames=frames) for frames in (700, 4100, 2500)]
    with Loop(multilingual) as loop:
        expected = [words_of(loop.ask(ask).result(WAIT_S)) for ask in asks]
    memory = _device(device)
    graphs = Graphs(multilingual.folder, 1, memory)

    def encode(mel):
        assert isinstance(mel, torch.Tensor)
        return memory.array(multilingual.encode(mel.cpu().numpy()))

    loop = Loop(multilingual, encode=encode)
    loop._slots = Slots(graphs, multilingual.sizes, 4)
    loop._slots.warm_up()
    assert loop._slots.used == 0
    with loop:
        there = [_moved(ask, memory) for ask in asks]
        found = [words_of(future.result(WAIT_S)) for future in [loop.ask(ask) for ask in there]]
    assert isinstance(loop._slots._past, torch.Tensor) and loop._slots._past.device.type == memory.device.type
    assert found == expected
    assert any(transcript for _, transcript, _ in found)


def _device(name: str) -> Device:
    """The device, in full float32: by default a GPU multiplies with 10 bits behind the point, and near words part."""
    device = Device(name)
    if name != "cpu":
        device.providers = [("CUDAExecutionProvider", {"device_id": 0, "use_tf32": 0}), "CPUExecutionProvider"]
    return device


def _moved(ask, memory):
    return replace(ask, features=memory.array(ask.features), mel=memory.array(ask.mel))


@pytest.mark.parametrize("device", DEVICES)
def test_tokens_are_chosen_alike(english, device: str) -> None:
    rng, tokens = np.random.default_rng(2), english.tokens
    begin = tokens.timestamp_begin
    said = [Said() for _ in range(4)]
    for row, history in zip(said, ([], [begin], [begin, 5], [begin, 5, begin + 9]), strict=True):
        for token in history:
            row.add(token, 0.0, begin)
    logits = 4 * rng.standard_normal((4, english.sizes.n_vocab), np.float32)
    there = torch.tensor(logits, device=device)
    assert probability(there[0], tokens.no_speech) == pytest.approx(probability(logits[0], tokens.no_speech), rel=1e-4)
    (here, sure), (chosen, logprobs) = choose(logits, said, tokens), choose(there, said, tokens)
    assert chosen.tolist() == here.tolist()
    np.testing.assert_allclose(logprobs.cpu().numpy(), sure, atol=1e-4)


@pytest.mark.parametrize("device", DEVICES)
def test_windows_are_cut_alike_where_the_recording_lies(device: str) -> None:
    for frames in (0, 20, 4000):
        mel = np.random.default_rng(3).standard_normal((80, frames), np.float32)
        there = torch.tensor(mel, device=device)
        assert (cut(there, frames // 2, frames // 4).cpu().numpy() == cut(mel, frames // 2, frames // 4)).all()
        assert (cut_for_detection(there).cpu().numpy() == cut_for_detection(mel)).all()


def test_a_gpu_that_onnx_runtime_passes_over_in_silence_is_refused(english) -> None:
    """As with onnxruntime-gpu where a library of CUDA is missing: it logs a line, and computes on the host."""
    if not MISSING:
        pytest.skip("this ONNX Runtime can use the GPU")
    memory = Device("cpu")
    memory.providers = [("CUDAExecutionProvider", {"device_id": 0}), "CPUExecutionProvider"]
    with warnings.catch_warnings(), pytest.raises(RuntimeError, match="CUDAExecutionProvider is needed: .*KIND_CPU"):
        warnings.simplefilter("ignore")  # one for CPUs warns besides
        Graphs(english.folder, 1, memory)


@pytest.mark.parametrize("device", DEVICES[1:])
def test_a_graph_on_the_gpu_reads_and_writes_the_tensors_themselves(english, device: str) -> None:
    memory = Device(device)
    graphs = Graphs(english.folder, 1, memory)
    sizes = english.sizes
    features = torch.randn(1, sizes.n_audio_ctx, sizes.n_audio_state, device=device)
    shape = (1, sizes.n_text_head, sizes.n_audio_ctx, sizes.n_text_state // sizes.n_text_head)
    names = [f"cross_{kind}_{layer}" for kind in "kv" for layer in range(sizes.n_text_layer)]
    targets = {name: memory.zeros(shape, sizes.dtype) for name in names}
    run_graph(memory, graphs.cross, {"features": features}, targets)
    assert all(bool(one.abs().sum() > 0) for one in targets.values())
