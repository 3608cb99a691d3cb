"""Darknet `.cfg` + `.weights` + class names to an export folder.

In: three files. Out: `model.onnx`, `labels.txt`, `yolo.json` in the folder given.
"""

from __future__ import annotations

import logging
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import onnx
import torch

from weights.errors import ExportError
from weights.yolo.darknet_cfg import read_cfg
from weights.yolo.darknet_network import DarknetNetwork, Floats
from weights.yolo.description import YoloDescription, write_description

OPSET = 18


def export_darknet(cfg: Path, weights: Path, names: Path, out: Path) -> None:
    """Fill the empty folder `out` with a Darknet network in ONNX, with any batch.

    Raises:
        ExportError: The files do not belong together or use layers that are not known.
    """
    network = DarknetNetwork(read_cfg(cfg.read_text(encoding="utf-8")), Floats(weights.read_bytes())).eval()
    labels = _read_names(names, network.classes)
    _write_onnx(network, out / "model.onnx")
    description = YoloDescription(
        source=f"{weights.name} (Darknet)",
        input="images",
        output="output0",
        data_type="TYPE_FP32",
        output_data_type="TYPE_FP32",
        height=network.height,
        width=network.width,
        batch=None,
        output_shape=(4 + network.classes, network.anchors),
        layout="boxes_scores",
        classes=network.classes,
    )
    write_description(out, description, labels)


def _read_names(path: Path, classes: int) -> list[str]:
    names = [line.strip() for line in path.read_text(encoding="utf-8").splitlines() if line.strip()]
    if len(names) != classes:
        raise ExportError(
            f"{path.name}: {len(names)} class names, one line each; the .cfg has {classes}. Give the list that fits."
        )
    return names


def _write_onnx(network: DarknetNetwork, path: Path) -> None:
    example = torch.zeros(2, 3, network.height, network.width)
    with torch.no_grad(), _quiet_exporter():
        torch.onnx.export(
            network,
            (example,),
            str(path),
            input_names=["images"],
            output_names=["output0"],
            dynamic_shapes={"images": {0: torch.export.Dim("batch", min=1, max=1024)}},
            opset_version=OPSET,
            dynamo=True,
            external_data=False,
            verbose=False,
        )
    model = onnx.load(path)
    _forget_origin(model.graph)
    onnx.save_model(model, path)


def _forget_origin(graph: onnx.GraphProto) -> None:
    """Without the exporter's notes: they hold this machine's paths, and the file would differ between machines."""
    for part in (graph, *graph.node, *graph.input, *graph.output, *graph.value_info, *graph.initializer):
        del part.metadata_props[:]


@contextmanager
def _quiet_exporter() -> Iterator[None]:
    """Without the exporter's notes about torchvision operators that no Darknet network has."""
    logger = logging.getLogger("torch.onnx")
    level = logger.level
    logger.setLevel(logging.ERROR)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logger.setLevel(level)
