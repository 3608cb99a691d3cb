import struct
from pathlib import Path

import numpy as np
import pytest

from weights.errors import ExportError
from weights.whisper.checkpoint import Checkpoint, reference_network
from weights.whisper.ctranslate2 import read_ctranslate2

TYPES = {"float32": 0, "int8": 1, "int16": 2, "float16": 4}


def model_bin(variables: dict[str, np.ndarray], *, version: int = 6, spec: str = "WhisperSpec") -> bytes:
    """The layout as CTranslate2 writes it."""
    out = struct.pack("<I", version) + text(spec) + struct.pack("<II", 3, len(variables))
    for name, array in variables.items():
        out += text(name) + struct.pack("<B", array.ndim) + struct.pack(f"<{array.ndim}I", *array.shape)
        out += struct.pack("<BI", TYPES[array.dtype.name], array.nbytes) + array.tobytes()
    return out + struct.pack("<I", 1) + text("decoder/projection/weight") + text("decoder/embeddings/weight")


def text(value: str) -> bytes:
    data = value.encode() + b"\0"
    return struct.pack("<H", len(data)) + data


def as_ctranslate2(checkpoint: Checkpoint) -> dict[str, np.ndarray]:
    """The arrays of a checkpoint fused and named as CTranslate2 does, in float16."""
    arrays, sizes = checkpoint.arrays, checkpoint.dimensions
    out: dict[str, np.ndarray] = {
        "encoder/num_heads": np.array(sizes.n_audio_head, np.int16),
        "decoder/num_heads": np.array(sizes.n_text_head, np.int16),
        "decoder/embeddings/weight": arrays["decoder.token_embedding.weight"],
        "encoder/layer_norm/gamma": arrays["encoder.ln_post.weight"],
        "encoder/layer_norm/beta": arrays["encoder.ln_post.bias"],
        "decoder/layer_norm/gamma": arrays["decoder.ln.weight"],
        "decoder/layer_norm/beta": arrays["decoder.ln.bias"],
    }
    for half, layers in (("encoder", sizes.n_audio_layer), ("decoder", sizes.n_text_layer)):
        out[f"{half}/position_encodings/encodings"] = arrays[f"{half}.positional_embedding"]
        for i in range(layers):
            ours, theirs = f"{half}.blocks.{i}", f"{half}/layer_{i}"

            def fuse(name: str, source: str, parts: tuple[str, ...]) -> None:
                zeros = np.zeros_like(arrays[f"{source}.out.bias"])
                out[f"{name}/weight"] = np.concatenate([arrays[f"{source}.{p}.weight"] for p in parts])
                out[f"{name}/bias"] = np.concatenate([arrays.get(f"{source}.{p}.bias", zeros) for p in parts])

            fuse(f"{theirs}/self_attention/linear_0", f"{ours}.attn", ("query", "key", "value"))
            fuse(f"{theirs}/self_attention/linear_1", f"{ours}.attn", ("out",))
            norms = {"self_attention": "attn_ln", "ffn": "mlp_ln"}
            if half == "decoder":
                fuse(f"{theirs}/attention/linear_0", f"{ours}.cross_attn", ("query",))
                fuse(f"{theirs}/attention/linear_1", f"{ours}.cross_attn", ("key", "value"))
                fuse(f"{theirs}/attention/linear_2", f"{ours}.cross_attn", ("out",))
                norms["attention"] = "cross_attn_ln"
            for part, norm in norms.items():
                out[f"{theirs}/{part}/layer_norm/gamma"] = arrays[f"{ours}.{norm}.weight"]
                out[f"{theirs}/{part}/layer_norm/beta"] = arrays[f"{ours}.{norm}.bias"]
            for linear, mlp in (("linear_0", "mlp.0"), ("linear_1", "mlp.2")):
                for kind in ("weight", "bias"):
                    out[f"{theirs}/ffn/{linear}/{kind}"] = arrays[f"{ours}.{mlp}.{kind}"]
    for name in ("conv1", "conv2"):
        for kind in ("weight", "bias"):
            out[f"encoder/{name}/{kind}"] = arrays[f"encoder.{name}.{kind}"]
    return {name: array.astype(np.float16) if array.ndim else array for name, array in out.items()}


@pytest.fixture
def file(small: Checkpoint, tmp_path: Path) -> Path:
    path = tmp_path / "model.bin"
    path.write_bytes(model_bin(as_ctranslate2(small)))
    return path


def test_every_array_and_every_dimension_comes_back(small: Checkpoint, file: Path) -> None:
    read = read_ctranslate2(file)
    assert read.dimensions == small.dimensions
    assert set(read.arrays) == set(small.arrays)
    for name, array in small.arrays.items():
        np.testing.assert_array_equal(read.arrays[name], array.astype(np.float16), err_msg=name)


def test_the_package_takes_the_arrays_with_none_left_over_or_missing(file: Path) -> None:
    reference_network(read_ctranslate2(file))


def test_a_file_cut_short_is_named_as_such(file: Path) -> None:
    file.write_bytes(file.read_bytes()[:-1])
    with pytest.raises(ExportError, match="model.bin: cut short at"):
        read_ctranslate2(file)


def test_bytes_behind_the_end_are_an_error(file: Path) -> None:
    file.write_bytes(file.read_bytes() + b"x")
    with pytest.raises(ExportError, match="model.bin: 1 bytes after its end"):
        read_ctranslate2(file)


def test_another_kind_of_network_is_refused(small: Checkpoint, file: Path) -> None:
    file.write_bytes(model_bin({}, spec="TransformerSpec"))
    with pytest.raises(ExportError, match="kind 'TransformerSpec'.*'WhisperSpec' is expected"):
        read_ctranslate2(file)


def test_quantized_weights_are_refused_by_name(small: Checkpoint, file: Path) -> None:
    variables = as_ctranslate2(small)
    variables["decoder/embeddings/weight"] = variables["decoder/embeddings/weight"].astype(np.int8)
    file.write_bytes(model_bin(variables))
    with pytest.raises(ExportError, match="decoder/embeddings/weight is quantized"):
        read_ctranslate2(file)
