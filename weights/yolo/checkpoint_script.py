"""Runs inside the Ultralytics environment: one checkpoint to one ONNX file. Knows nothing of tritonkit.

Called with one argument, JSON: {"checkpoint", "target", "scratch", "arguments"}; the last goes to the exporter.
The last line it prints is JSON: {} or {"refused": reason}.
"""

import json
import os
import shutil
import sys
from pathlib import Path


def main() -> None:
    """Do what the argument says and print the verdict."""
    job = json.loads(sys.argv[1])
    kept = prepare(Path(job["scratch"]))  # noqa: F841, alive as long as its operators are needed
    try:
        refused = export(Path(job["checkpoint"]), Path(job["target"]), Path(job["scratch"]), job["arguments"])
    except Exception as error:  # whatever the checkpoint or the exporter raises becomes one line for the caller
        refused = f"{type(error).__name__}: {(str(error).strip() or 'no reason given').splitlines()[0]}"
    print("\n" + json.dumps({"refused": refused} if refused else {}))


def prepare(scratch: Path) -> object:
    """Keep Ultralytics off the network, off the home folder and off unpickling code; give it torchvision's `nms`.

    What comes back must be kept: the operators go with it.
    """
    os.environ.update(
        YOLO_CONFIG_DIR=str(scratch),
        YOLO_OFFLINE="1",
        YOLO_AUTOINSTALL="0",
        ULTRALYTICS_SAFE_LOAD="1",
        ORT_DISABLE_TELEMETRY="1",
    )
    return provide_torchvision_operators()


def provide_torchvision_operators() -> object:
    """Make `import torchvision` work where its compiled part does not fit this torch (a CPU build, for one).

    Only non-maximum suppression is needed, and only while the exporter traces it: any correct `nms` does.
    """
    import torch

    if _loads_compiled_part():
        return None
    library = torch.library.Library("torchvision", "DEF")
    for operator in ("nms", "qnms"):
        library.define(operator + "(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
    import torchvision.extension
    from ultralytics.utils.nms import TorchNMS

    library.impl("nms", TorchNMS.nms, "CPU")
    torchvision.extension._has_ops = lambda: True
    return library


def _loads_compiled_part() -> bool:
    import importlib.util

    import torch

    found = importlib.util.find_spec("torchvision")
    folders = (found and found.submodule_search_locations) or []
    for file in (file for folder in folders for file in Path(folder).glob("_C*.so")):
        try:
            torch.ops.load_library(str(file))
        except OSError:
            continue
        return True
    return False


def export(checkpoint: Path, target: Path, scratch: Path, arguments: dict) -> str | None:
    """Write the ONNX file; the reason when the checkpoint is not one that is served."""
    from ultralytics import YOLO
    from ultralytics.nn.modules import Detect

    # The exporter writes beside the checkpoint.
    link = scratch / "checkpoint.pt"
    link.symlink_to(checkpoint)
    model = YOLO(str(link))
    head = model.model.model[-1]
    if model.task != "detect" or not isinstance(head, Detect):
        return f"it is for the task '{model.task}' with the head {type(head).__name__}; detect with a Detect is served"
    channels = model.model.yaml.get("channels", 3)
    if channels != 3:
        return f"it takes pictures of {channels} channels; 3 (RGB) are expected"
    if arguments.get("nms") is False and getattr(head, "one2one_cv2", None) is None:
        return "it has no end-to-end head (YOLOv10 and YOLO26 have); use nms 'outside' or 'inside'"
    shutil.move(model.export(format="onnx", simplify=False, dynamic=True, device="cpu", **arguments), target)
    return None


if __name__ == "__main__":
    main()
