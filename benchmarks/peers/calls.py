"""How each contender is asked: over HTTP with aiohttp, or over gRPC with tritonkit's own client."""

from __future__ import annotations

import base64
import json
from collections.abc import AsyncIterator
from typing import Any

import aiohttp
import numpy as np

from benchmarks.peers.cases import Case
from benchmarks.peers.driver import Answer, Call, Watch
from benchmarks.peers.work.asking import MAX_TOKENS, chat_body
from benchmarks.peers.work.services import ask_in, both_in, frame_in, samples_in
from clients import AsyncClient, Delta, Heard, Seen

Session = aiohttp.ClientSession


def posted(session: Session, url: str) -> Call:
    """The body as it is; the answer is the JSON."""

    async def call(case: Case) -> Answer:
        return Answer(value=await _json_of(session, url, case.body))

    return call


def posted_to_litserve(session: Session, url: str) -> Call:
    """As `posted`; the answer lies under a name."""

    async def call(case: Case) -> Answer:
        return Answer(value=(await _json_of(session, url, case.body))["answer"])

    return call


def posted_as_list(session: Session, url: str) -> Call:
    """The body in base64, in a list of one, as BentoML's batched APIs take it."""

    async def call(case: Case) -> Answer:
        body = json.dumps({"bodies": [base64.b64encode(case.body).decode()]})
        return Answer(value=(await _json_of(session, url, body.encode(), "application/json"))[0])

    return call


async def _json_of(session: Session, url: str, body: bytes, kind: str = "application/octet-stream") -> Any:
    async with session.post(url, data=body, headers={"Content-Type": kind}) as response:
        if response.status != 200:
            raise RuntimeError(f"{response.status}: {(await response.text())[:200]}")
        return await response.json(content_type=None)


def streamed(session: Session, url: str) -> Call:
    """OpenAI's chat, streamed."""

    async def call(case: Case) -> Answer:
        watch = Watch()
        async with session.post(url, json=chat_body(json.loads(case.body)["messages"], stream=True)) as response:
            if response.status != 200:
                raise RuntimeError(f"{response.status}: {(await response.text())[:200]}")
            async for event in _events(response):
                if event["choices"]:
                    watch.take(event["choices"][0]["delta"].get("content") or "")
        return watch.answer()

    return call


async def _events(response: aiohttp.ClientResponse) -> AsyncIterator[dict[str, Any]]:
    """The JSON of each server-sent event."""
    async for line in response.content:
        if line.startswith(b"data: ") and not line.startswith(b"data: [DONE]"):
            yield json.loads(line[6:])


# tritonkit's pipelines, and any Triton model


def pipeline(client: AsyncClient, service: str) -> Call:
    """One call of a tritonkit pipeline."""
    return {
        "detect": _detect,
        "transcribe": _transcribe,
        "both": _both,
        "assistant": _assistant,
        "chat": _chat,
        "frame": _frame,
    }[service](client)


def _detect(client: AsyncClient) -> Call:
    async def call(case: Case) -> Answer:
        return Answer(value=_items(await client.detect(case.body)))

    return call


def _transcribe(client: AsyncClient) -> Call:
    async def call(case: Case) -> Answer:
        return Answer(value=(await client.transcribe(samples_in(case.body))).text)

    return call


def _both(client: AsyncClient) -> Call:
    async def call(case: Case) -> Answer:
        picture, samples = both_in(case.body)
        out = await client.infer("both", {"IMAGE": np.frombuffer(picture, np.uint8), "AUDIO": samples})
        return Answer(value={"transcript": out["TRANSCRIPT"][0].decode().strip(), "detections": _found(out)})

    return call


def _assistant(client: AsyncClient) -> Call:
    async def call(case: Case) -> Answer:
        picture, samples, question = ask_in(case.body)
        watch, noticed = Watch(), {}
        async for event in client.ask(samples, picture, question, max_tokens=MAX_TOKENS, temperature=0):
            if isinstance(event, Heard):
                noticed["transcript"] = event.transcript
            elif isinstance(event, Seen):
                noticed["detections"] = _items(event.detections)
            elif isinstance(event, Delta):
                watch.take(event.text)
        return Answer(value={**noticed, **watch.answer().value})

    return call


def _chat(client: AsyncClient) -> Call:
    async def call(case: Case) -> Answer:
        watch = Watch()
        async for event in client.chat(json.loads(case.body)["messages"], max_tokens=MAX_TOKENS, temperature=0):
            if isinstance(event, Delta):
                watch.take(event.text)
        return watch.answer()

    return call


def _frame(client: AsyncClient) -> Call:
    async def call(case: Case) -> Answer:
        return Answer(value=(await client.infer("frame", {"frame": frame_in(case.body)[None]}))["mean"][0].tolist())

    return call


def gemm(client: AsyncClient, model: str) -> Call:
    """One row."""

    async def call(case: Case) -> Answer:
        return Answer(value=(await client.infer(model, {"row": samples_in(case.body)[None]}))["answer"][0].tolist())

    return call


def step_by_step(client: AsyncClient, service: str) -> Call:
    """Each model by a call of its own, the tensors between them by way of the client."""

    async def hear(samples: np.ndarray) -> str:
        features = await client.infer("whisper_features", {"AUDIO": samples})
        encoded = await client.infer("whisper_encoder", {"mel": features["WINDOWS"]})
        between = {"FEATURES": encoded["features"], "MEL": features["MEL"], "SPANS": features["SPANS"]}
        out = await client.infer("whisper_decoder", between)
        return out["TRANSCRIPT"][0].decode().strip()

    async def see(picture: bytes) -> list[dict[str, Any]]:
        pixels = await client.infer("yolo_preprocess", {"IMAGE": np.frombuffer(picture, np.uint8)})
        answer = await client.infer("yolo", {"images": pixels["IMAGES"][None]})
        between = {"PREDICTIONS": answer["output0"][0], "GEOMETRY": pixels["GEOMETRY"]}
        return _found(await client.infer("yolo_postprocess", between))

    async def call(case: Case) -> Answer:
        if service == "detect":
            return Answer(value=await see(case.body))
        if service == "transcribe":
            return Answer(value=await hear(samples_in(case.body)))
        picture, samples = both_in(case.body)
        noticed = {"detections": await see(picture), "transcript": await hear(samples)}
        if service == "both":
            return Answer(value=noticed)
        given = {
            "TRANSCRIPT": [noticed["transcript"]],
            "DETECTIONS": [json.dumps({"detections": noticed["detections"]})],
            "QUESTION": [ask_in(case.body)[2]],
        }
        messages = json.loads((await client.infer("prompt", given))["MESSAGES"][0])
        watch = Watch()
        async for event in client.chat(messages, max_tokens=MAX_TOKENS, temperature=0):
            if isinstance(event, Delta):
                watch.take(event.text)
        return Answer(value={**noticed, **watch.answer().value})

    return call


def pytriton(client: AsyncClient, service: str) -> Call:
    """One call of a model that PyTriton serves."""

    async def call(case: Case) -> Answer:
        if service == "gemm":
            body: Any = samples_in(case.body)[None]
        elif service == "frame":
            body = frame_in(case.body)[None]
        else:
            body = np.array([[case.body]], np.object_)
        answer = (await client.infer(service, {"body": body}))["answer"][0]
        return Answer(value=answer.tolist() if service in ("gemm", "frame") else json.loads(answer[0]))

    return call


def _items(found: Any) -> list[dict[str, Any]]:
    return [{"label": one.label, "score": one.score, "box": list(one.box)} for one in found.items]


def _found(out: Any) -> list[dict[str, Any]]:
    detections: list[dict[str, Any]] = json.loads(out["DETECTIONS"][0])["detections"]
    return detections
