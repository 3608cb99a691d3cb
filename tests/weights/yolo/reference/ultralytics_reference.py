"""Runs inside the Ultralytics environment: makes checkpoints, and says what Ultralytics and OpenCV find.

Called with a job in JSON; the last line printed is JSON.
    {"make": {name: path}, "pictures", "size"}             randomly initialised checkpoints that are sure of some boxes
    {"raw": [{"outputs", "detections", "size", "original"}]}   their suppression and scaling of given outputs (.npy)
    {"predict": [{"model", "pictures", "size"}]}  their whole path, from files to boxes
    {"darknet": {"cfg", "weights", "pictures"}}   OpenCV's own reader of Darknet files and its own suppression
    {"darknet_raw": {"cfg", "weights", "image"}}  the rows that it gives for one array (.npy)
Boxes come back as [x1, y1, x2, y2, score, class].
"""

import json
import os
import sys
import tempfile

CONFIDENCE, IOU = 0.25, 0.45


def main():
    job = json.loads(sys.argv[1])
    for name in ("darknet", "darknet_raw"):
        if name in job:
            return print("\n" + json.dumps(globals()[name](**job[name])))
    sys.path.insert(0, job["script_folder"])
    from checkpoint_script import prepare

    with tempfile.TemporaryDirectory() as scratch:
        kept = prepare(scratch)  # noqa: F841, alive as long as its operators are needed
        answer = {}
        for name in ("make", "raw", "predict"):
            if name in job:
                answer[name] = globals()[name](job[name], job)
    print("\n" + json.dumps(answer))


def make(paths, job):
    import numpy as np
    import torch
    from ultralytics import YOLO

    torch.set_num_threads(2)
    batch = torch.from_numpy(np.stack([letterboxed(path, job["size"]) for path in job["pictures"]]))
    for name, path in paths.items():
        torch.manual_seed(20)
        model = YOLO(f"{name}.yaml")
        if model.task == "detect":
            wake(model.model, batch)
            model.model.names = {number: f"thing {number}" for number in range(80)}
        model.save(path)
    return len(paths)


def letterboxed(path, size):
    import cv2
    import numpy as np
    from ultralytics.data.augment import LetterBox

    return LetterBox((size, size))(image=cv2.imread(path))[:, :, ::-1].transpose(2, 0, 1).astype(np.float32) / 255


def wake(network, batch):
    """Give a random network the statistics of pictures, and scores that pass 0.25 at one place in twenty."""
    import torch

    norms = [module for module in network.modules() if isinstance(module, torch.nn.BatchNorm2d)]
    old = [norm.momentum for norm in norms]
    heads = [
        network.model[-1].cv3,
        *([network.model[-1].one2one_cv3] if hasattr(network.model[-1], "one2one_cv3") else []),
    ]
    lasts = [scale[-1] for head in heads for scale in head]
    seen = {}
    hooks = [last.register_forward_hook(lambda module, _, out: seen.__setitem__(module, out)) for last in lasts]
    with torch.no_grad():
        for norm in norms:
            norm.momentum = 1.0
        network.train()
        network(batch)
        network.eval()
        network(batch)
        for last in lasts:
            best = (seen[last] - last.bias[None, :, None, None]).amax(1)
            often = torch.quantile(best, 0.95)
            factor = 3 / (best.max() - often)
            last.weight *= factor
            last.bias[:] = -1.1 - often * factor
    for norm, momentum in zip(norms, old, strict=True):
        norm.momentum = momentum
    for hook in hooks:
        hook.remove()


def raw(cases, _job):
    import numpy as np
    import torch
    from ultralytics.utils.nms import non_max_suppression
    from ultralytics.utils.ops import scale_boxes

    answers = []
    for case in cases:
        outputs = torch.from_numpy(np.load(case["outputs"]))
        kept = non_max_suppression(outputs, CONFIDENCE, IOU, end2end=case["detections"])[0]
        kept[:, :4] = scale_boxes(case["size"], kept[:, :4], case["original"])
        answers.append(kept.tolist())
    return answers


def predict(cases, _job):
    from ultralytics import YOLO

    answers = []
    for case in cases:
        model = YOLO(case["model"], task="detect")
        size = case["size"]
        found = [
            model.predict(p, imgsz=size, rect=False, conf=CONFIDENCE, iou=IOU, verbose=False)[0]
            for p in case["pictures"]
        ]
        answers.append([each.boxes.data.tolist() for each in found])
    return answers


def darknet(cfg, weights, pictures):
    import cv2
    import numpy as np

    network = cv2.dnn.readNetFromDarknet(cfg, weights)
    network.setPreferableBackend(cv2.dnn.DNN_BACKEND_OPENCV)
    answers = []
    for path in pictures:
        picture = cv2.imread(path)
        height, width = picture.shape[:2]
        scale = min(416 / width, 416 / height)
        across, down = round(width * scale), round(height * scale)
        left, top = (416 - across) // 2, (416 - down) // 2
        square = cv2.copyMakeBorder(
            cv2.resize(picture, (across, down)),
            top,
            416 - down - top,
            left,
            416 - across - left,
            cv2.BORDER_CONSTANT,
            value=(114, 114, 114),
        )
        network.setInput(cv2.dnn.blobFromImage(square, 1 / 255, swapRB=True))
        rows = np.concatenate(network.forward(network.getUnconnectedOutLayersNames()))
        scores, classes = rows[:, 5:].max(axis=1), rows[:, 5:].argmax(axis=1)
        corners = np.concatenate((rows[:, :2] - rows[:, 2:4] / 2, rows[:, 2:4]), axis=1) * 416
        kept = cv2.dnn.NMSBoxesBatched(corners.tolist(), scores.tolist(), classes.tolist(), CONFIDENCE, IOU)
        found = []
        for row in kept:
            x, y, w, h = corners[row]
            sides = np.array(
                [
                    (x - left) * width / across,
                    (y - top) * height / down,
                    (x + w - left) * width / across,
                    (y + h - top) * height / down,
                ]
            )
            found.append(
                [*sides.clip(0, [width, height, width, height]).tolist(), float(scores[row]), int(classes[row])]
            )
        answers.append(found)
    return answers


def darknet_raw(cfg, weights, image):
    import cv2
    import numpy as np

    network = cv2.dnn.readNetFromDarknet(cfg, weights)
    network.setPreferableBackend(cv2.dnn.DNN_BACKEND_OPENCV)
    network.setInput(np.load(image))
    return np.concatenate(network.forward(network.getUnconnectedOutLayersNames())).tolist()


if __name__ == "__main__":
    os.environ.setdefault("OMP_NUM_THREADS", "2")
    main()
