"""/v1/detections: a picture in, the objects in it and their boxes out. Not OpenAI's: it has no such endpoint."""

from typing import Any

from clients.gateway.problems import invalid
from clients.gateway.upstream import Upstream, detections_json


async def answer_detections(
    data: bytes, model: str, confidence: float | None, iou: float | None, upstream: Upstream
) -> dict[str, Any]:
    """The objects, best first; boxes x1 y1 x2 y2 in pixels of the picture as it is shown."""
    for name, value in (("confidence", confidence), ("iou", iou)):
        if value is not None and not 0 <= value <= 1:
            raise invalid(name, f"{value}", "a number of 0 to 1 is needed")
    found = await upstream.detect(data, confidence=confidence, iou=iou)
    return {"object": "detections", "model": model, **detections_json(found)}
