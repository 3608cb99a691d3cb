"""One row's fields come in; the pipeline's answer goes out as plain JSON values.

The Kafka worker and Ray use the same calls: what a field means is said here once.

| pipeline   | fields                                                                                   |
|------------|------------------------------------------------------------------------------------------|
| transcribe | audio, language, task, mode                                                              |
| detect     | image, confidence, iou                                                                   |
| assistant  | audio, image, question, those of transcribe and detect, max_tokens, sampling parameters  |
| llm        | prompt or messages, max_tokens, sampling parameters                                      |
| any other  | its inputs by name, as JSON lists, numbers and text                                      |

`audio` and `image` are a path, bytes, or {"base64": "..."}.
"""

import base64
import binascii
import json
from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from batch.errors import RowError

if TYPE_CHECKING:
    from clients.aio import AsyncClient
    from clients.signature import Signature

SPEECH = ("language", "task", "mode")
BOXES = ("confidence", "iou")
PIPELINES = ("transcribe", "detect", "assistant", "llm")
# The models that a server must have loaded for a pipeline.
ENTRIES = {"assistant": ("assistant", "assistant_audio", "assistant_image", "assistant_text")}


def entries(pipeline: str) -> tuple[str, ...]:
    """The models that are asked for this pipeline."""
    return ENTRIES.get(pipeline, (pipeline,))


class Caller:
    """Asks one pipeline of one server.

    Args:
        base: relative paths in fields start here.
        only_below: refuse paths that leave `base`; for fields that strangers write. None for base refuses all paths.
    """

    def __init__(
        self, client: "AsyncClient", pipeline: str, *, base: Path | None, only_below: bool = False, **options: Any
    ) -> None:
        self.pipeline = pipeline
        self._client = client
        self._base = base
        self._only_below = only_below
        self._options = options
        self._signature: Signature | None = None

    async def __call__(self, fields: Mapping[str, Any]) -> dict[str, Any]:
        """The answer to one row.

        Raises:
            RowError: the fields are not what the pipeline takes.
            ClientError: what the server, or the way to it, says.
        """
        ask = {
            "transcribe": self._transcribe,
            "detect": self._detect,
            "assistant": self._assistant,
            "llm": self._llm,
        }.get(self.pipeline, self._any)
        try:
            return await ask({**self._options, **fields})
        except (TypeError, ValueError, OSError) as error:
            raise RowError(f"{self.pipeline}: {error}") from error

    async def events(self, fields: Mapping[str, Any]) -> AsyncGenerator[dict[str, Any], None]:
        """The answer part by part, each {"event": what, ...}; pipelines that answer once have one, "result".

        Raises:
            RowError, ClientError: as for the whole answer.
        """
        if self.pipeline not in ("assistant", "llm"):
            yield {"event": "result", **await self(fields)}
            return
        given = {**self._options, **fields}
        try:
            stream = self._ask_events(given) if self.pipeline == "assistant" else self._chat_events(given)
            async with aclosing(stream) as parts:
                async for part in parts:
                    yield {"event": type(part).__name__.lower(), **asdict(part)}
        except (TypeError, ValueError, OSError) as error:
            raise RowError(f"{self.pipeline}: {error}") from error

    async def _transcribe(self, given: dict[str, Any]) -> dict[str, Any]:
        audio, options = self._needed(given, "audio"), taken(given, SPEECH)
        refuse_rest(self.pipeline, given, ("audio", *SPEECH))
        return asdict(await self._client.transcribe(audio, **options))

    async def _detect(self, given: dict[str, Any]) -> dict[str, Any]:
        image, options = self._needed(given, "image"), taken(given, BOXES)
        refuse_rest(self.pipeline, given, ("image", *BOXES))
        return asdict(await self._client.detect(image, **numbers(options)))

    async def _assistant(self, given: dict[str, Any]) -> dict[str, Any]:
        return await gathered(self._ask_events(given))

    def _ask_events(self, given: dict[str, Any]) -> Any:
        about = {"audio": self._media(given, "audio"), "image": self._media(given, "image")}
        question = str(given.pop("question", ""))
        given.pop("audio", None)
        given.pop("image", None)
        speech, boxes = taken(given, SPEECH), numbers(taken(given, BOXES))
        rest = numbers({name: value for name, value in given.items() if name not in (*SPEECH, *BOXES)})
        return self._client.ask(about["audio"], about["image"], question, **speech, **boxes, **rest)

    async def _llm(self, given: dict[str, Any]) -> dict[str, Any]:
        return await gathered(self._chat_events(given))

    def _chat_events(self, given: dict[str, Any]) -> Any:
        messages = given.pop("messages", None)
        prompt = given.pop("prompt", None)
        if (messages is None) == (prompt is None):
            raise RowError(f"{self.pipeline}: exactly one of the fields prompt and messages is needed")
        if isinstance(messages, str):
            messages = parsed("messages", messages)
        return self._client.chat(prompt if messages is None else messages, **numbers(given))

    async def _any(self, given: dict[str, Any]) -> dict[str, Any]:
        if self._signature is None:
            self._signature = await self._client._signature(self.pipeline, None)
        inputs = {name: as_array(self._signature, name, value) for name, value in given.items()}
        if not self._signature.is_decoupled:
            return plain(await self._client.infer(self.pipeline, inputs))
        async with aclosing(self._client.stream(self.pipeline, inputs)) as parts:
            return {"responses": [plain(part) async for part in parts]}

    def _needed(self, given: Mapping[str, Any], name: str) -> Any:
        media = self._media(given, name)
        if media is None:
            raise RowError(f'{self.pipeline}: no field {name}; a path, bytes or {{"base64": ...}} is needed')
        return media

    def _media(self, given: Mapping[str, Any], name: str) -> Any:
        value = given.get(name)
        if value is None or isinstance(value, bytes):
            return value
        if isinstance(value, Mapping):
            return decoded(name, value)
        if not isinstance(value, str):
            raise RowError(f'{name}: a {type(value).__name__}; a path, bytes or {{"base64": ...}} is needed')
        return self._file(name, value)

    def _file(self, name: str, value: str) -> Path:
        if self._base is None:
            raise RowError(f'{name}: the path {value}; paths are not accepted here. Send {{"base64": ...}}.')
        path = self._base / value
        if self._only_below and not path.resolve().is_relative_to(self._base.resolve()):
            raise RowError(f"{name}: the path {value} leaves the folder of files. Give one below it.")
        if not path.is_file():
            raise RowError(f"{name}: no file {value}")
        return path


async def gathered(events: Any) -> dict[str, Any]:
    """A streamed answer as one value."""
    from clients.values import Delta, Finished, Heard, Seen

    answer: dict[str, Any] = {"text": ""}
    async with aclosing(events) as stream:
        async for event in stream:
            if isinstance(event, Delta):
                answer["text"] += event.text
            elif isinstance(event, Heard):
                answer["transcript"] = event.transcript
            elif isinstance(event, Seen):
                answer["detections"] = asdict(event.detections)
            elif isinstance(event, Finished):
                answer["finish_reason"] = event.reason
                answer |= {"prompt_tokens": event.prompt_tokens, "completion_tokens": event.completion_tokens}
    return answer


def decoded(name: str, value: Mapping[str, Any]) -> bytes:
    """The bytes of {"base64": text}."""
    text = value.get("base64")
    try:
        if not isinstance(text, str) or set(value) != {"base64"}:
            raise ValueError(f"an object with {', '.join(map(str, value)) or 'nothing'}")
        return base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError) as error:
        raise RowError(f'{name}: {error}; {{"base64": text}} is needed') from error


def taken(given: Mapping[str, Any], names: tuple[str, ...]) -> dict[str, Any]:
    """The fields of these names that were given."""
    return {name: given[name] for name in names if given.get(name) is not None}


def numbers(given: Mapping[str, Any]) -> dict[str, Any]:
    """The fields, text that is a JSON number, list or truth value as such: a CSV cell has no type."""
    return {name: number_or_text(value) for name, value in given.items()}


def number_or_text(value: Any) -> Any:
    """The value that a cell of a table means."""
    if not isinstance(value, str):
        return value
    try:
        meant = json.loads(value)
    except ValueError:
        return value
    return value if isinstance(meant, str | None) else meant


def refuse_rest(pipeline: str, given: Mapping[str, Any], known: tuple[str, ...]) -> None:
    """Raises RowError for a field that the pipeline does not have: a misspelt option would be lost silently."""
    rest = [name for name in given if name not in known]
    if rest:
        raise RowError(f"{pipeline}: no field {', '.join(rest)}; {', '.join(known)} are its fields")


def parsed(name: str, text: str) -> Any:
    """The JSON in a text field."""
    try:
        return json.loads(text)
    except ValueError as error:
        raise RowError(f"{name}: {error}; JSON is needed") from error


def as_array(signature: "Signature", name: str, value: Any) -> Any:
    """The value as the array that the input takes; an unknown input is left to the client to refuse."""
    import numpy as np
    from tritonclient.utils import triton_to_np_dtype

    wanted = signature.inputs.get(name)
    if wanted is None or wanted.datatype == "BYTES":
        return value
    try:
        array = np.asarray(number_or_text(value), dtype=triton_to_np_dtype(wanted.datatype))
    except (TypeError, ValueError) as error:
        raise RowError(f"{name}: {error}; numbers of {wanted.datatype} are needed") from error
    return array.reshape(1) if array.ndim == 0 else array


def plain(outputs: Mapping[str, Any]) -> dict[str, Any]:
    """Outputs as JSON values."""
    return {
        name: [text_of(item) for item in array.reshape(-1)] if array.dtype == object else array.tolist()
        for name, array in outputs.items()
    }


def text_of(item: Any) -> str:
    """Text of a BYTES element; bytes that are no UTF-8 are shown with escapes."""
    return item.decode("utf-8", "backslashreplace") if isinstance(item, bytes) else str(item)
