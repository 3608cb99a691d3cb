"""The models of a repository in this process, without a server: their own model.py, ONNX files and ensembles.

Nothing of a model is written a second time here: Python models run as the served files are, ONNX files by the backend
that the embedded server has, and the steps of an ensemble one after the other as its config.pbtxt joins them. What
streams answers many requests at once, as on the server; each other model does one after the other.
"""

import asyncio
import contextlib
import itertools
import tempfile
from collections.abc import AsyncGenerator, Generator, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from batch.errors import OfflineError
from clients.endpoint import Endpoint
from clients.signature import Signature, signature_of
from clients.tensors import Request, Response
from clients.transports import problems

if TYPE_CHECKING:
    from clients.aio import AsyncClient
    from tritonkit.testing import Model

Arrays = Mapping[str, np.ndarray]
ONNX_BACKEND = Path(__file__).parents[1] / "embedded" / "backends" / "onnxruntime"
THREADS = 64  # rows that may be in the models at once


class OfflineTransport:
    """What an AsyncClient needs of a server, from models in this process. Loading happens here, and takes a while.

    Args:
        entries: what will be asked; ensembles bring their steps.
        config_name: the configs/NAME.pbtxt to load by, such as gpu; config.pbtxt if empty.
    """

    def __init__(self, repository: Path, entries: Sequence[str], *, config_name: str = "", timeout_s: float) -> None:
        self.endpoint = Endpoint(scheme="offline", host=str(repository), port=0)
        self._repository, self._config_name, self._timeout_s = repository, config_name, timeout_s
        self._configs: dict[str, Any] = {}
        self._models: dict[str, Model] = {}
        self._threads = ThreadPoolExecutor(THREADS, thread_name_prefix="offline")
        self._folder = tempfile.TemporaryDirectory(prefix="tritonkit-offline-")
        try:
            for name in entries:
                self._load(name)
            for model in self._models.values():
                model.models |= {name: other for name, other in self._models.items() if other is not model}
        except BaseException:
            self._end()
            raise

    # -- loading ------------------------------------------------------------------------------------------------------

    def _load(self, name: str) -> None:
        from tritonkit.testing import TestingError, load_model

        if name in self._configs:
            return
        config = self._configs[name] = self._read(name)
        for step in config.ensemble_scheduling.step:
            self._load(step.model_name)
        for parameter in config.parameters.values():  # a model that asks another one says so in a parameter
            if (self._repository / parameter.string_value / "config.pbtxt").is_file() and parameter.string_value:
                self._load(parameter.string_value)
        if config.platform == "ensemble":
            return
        folder = self._repository / name if config.backend == "python" else self._as_python(name, config)
        profile = self._config_name if config.backend == "python" else None
        try:
            self._models[name] = load_model(folder, profile=profile or None, strict=False, timeout_s=self._timeout_s)
        except TestingError as error:
            raise OfflineError(f"{name}: {error}") from error

    def _read(self, name: str) -> Any:
        from google.protobuf import text_format
        from tritonclient.grpc.model_config_pb2 import ModelConfig

        folder, config = self._repository / name, ModelConfig()
        special = folder / "configs" / f"{self._config_name}.pbtxt"
        path = special if self._config_name and special.is_file() else folder / "config.pbtxt"
        try:
            text_format.Parse(path.read_text(encoding="utf-8"), config)
        except (OSError, text_format.ParseError) as error:
            raise OfflineError(f"{path}: {error}. Give a built model repository.") from error
        config.name = name
        if config.platform != "ensemble" and config.backend not in ("python", "onnxruntime"):
            raise OfflineError(f"{path}: backend {config.backend!r}; python and onnxruntime run without a server.")
        return config

    def _as_python(self, name: str, config: Any) -> Path:
        """A folder in which the model is one of the Python backend: our ONNX backend's files beside its own."""
        from google.protobuf import text_format

        folder = Path(self._folder.name) / name
        (folder / "1").mkdir(parents=True)
        versions = [int(one.name) for one in (self._repository / name).iterdir() if one.name.isdigit()]
        if not versions:
            raise OfflineError(f"{self._repository / name}: no version folder. Build the repository first.")
        own = (self._repository / name / str(max(versions))).resolve()
        for file in itertools.chain(own.iterdir(), ONNX_BACKEND.glob("*.py")):
            (folder / "1" / file.name).symlink_to(file)
        python = type(config)()
        python.CopyFrom(config)
        python.backend, python.platform = "python", ""
        python.default_model_filename = config.default_model_filename or "model.onnx"
        (folder / "config.pbtxt").write_text(text_format.MessageToString(python), encoding="utf-8")
        return folder

    # -- asking -------------------------------------------------------------------------------------------------------

    async def infer(self, request: Request, timeout_s: float) -> Response:
        loop = asyncio.get_running_loop()
        outputs = await loop.run_in_executor(self._threads, lambda: next(self._answers(request)))
        return Response(outputs=outputs)

    async def stream(self, request: Request, timeout_s: float) -> AsyncGenerator[Response, None]:
        loop, answers = asyncio.get_running_loop(), self._answers(request)
        try:
            while (outputs := await loop.run_in_executor(self._threads, next, answers, None)) is not None:
                yield Response(outputs=outputs, is_final=False)
        finally:
            with contextlib.suppress(ValueError):  # of one that a thread is still in: it ends by itself
                answers.close()

    def _answers(self, request: Request) -> Generator[Arrays, None, None]:
        """The answers of a model, or of an ensemble; errors are those of a client of a server."""
        from tritonkit.testing import ModelError, RuleBroken

        try:
            yield from self._run(request.model, {one.name: one.array for one in request.tensors})
        except ModelError as error:
            raise problems.rejected(request.model, str(error)) from error
        except RuleBroken as error:
            raise problems.timed_out(request.model, self.endpoint, self._timeout_s, f"answer ({error})") from error

    def _run(self, name: str, inputs: Arrays) -> Generator[Arrays, None, None]:
        config = self._configs[name]
        if config.platform != "ensemble":
            yield from self._run_model(name, inputs)
            return
        tensors = dict(inputs)
        for step in in_order(config):
            answers = self._run(step.model_name, self._given(step, tensors))
            if self._streams(step.model_name):
                for answer in answers:
                    yield named(step, answer)
                return
            tensors |= named(step, next(answers))
        yield {one.name: tensors[one.name] for one in config.output if one.name in tensors}

    def _run_model(self, name: str, inputs: Arrays) -> Generator[Arrays, None, None]:
        model = self._models[name]
        if not model.is_decoupled:
            yield model.infer(inputs)
            return
        pending = model.stream(inputs)
        try:
            yield from pending
        finally:
            pending.cancel()  # nobody reads on; too late where it has ended

    def _given(self, step: Any, tensors: Arrays) -> dict[str, np.ndarray]:
        """A step's inputs, with or without the batch dimension as it takes them; an optional one may be missing."""
        config = self._configs[step.model_name]
        ranks = {one.name: len(one.dims) + (config.max_batch_size > 0) for one in config.input}
        given = {key: tensors[value] for key, value in step.input_map.items() if value in tensors}
        return {key: of_rank(array, ranks[key]) for key, array in given.items()}

    def _streams(self, name: str) -> bool:
        config = self._configs[name]
        steps = config.ensemble_scheduling.step
        return config.model_transaction_policy.decoupled or any(self._streams(step.model_name) for step in steps)

    # -- the rest of a server -----------------------------------------------------------------------------------------

    async def signature(self, model: str, timeout_s: float) -> Signature:
        if model not in self._configs:
            raise problems.not_ready(model, self.endpoint, "it was not loaded")
        config = type(self._configs[model])()
        config.CopyFrom(self._configs[model])
        config.model_transaction_policy.decoupled = self._streams(model)
        return signature_of(config)

    async def is_ready(self, model: str, timeout_s: float) -> bool:
        return model in self._configs

    async def register_region(self, name: str, key: str, byte_size: int, timeout_s: float) -> None:
        raise problems.rejected(name, "shared memory needs a server")

    async def unregister_region(self, name: str, timeout_s: float) -> None:
        raise problems.rejected(name, "shared memory needs a server")

    async def region_names(self, timeout_s: float) -> tuple[str, ...]:
        return ()

    async def server_version(self, timeout_s: float) -> str:
        return ""

    async def close(self) -> None:
        await asyncio.to_thread(self._end)

    def _end(self) -> None:
        for model in self._models.values():
            model.close()
        self._threads.shutdown(wait=False, cancel_futures=True)
        self._folder.cleanup()


def offline_client(repository: Path, entries: Sequence[str], *, config_name: str, timeout_s: float) -> "AsyncClient":
    """A client of the repository's own models in this process."""
    from clients.aio import AsyncClient

    transport = OfflineTransport(repository, entries, config_name=config_name, timeout_s=timeout_s)
    return AsyncClient(transport, timeout_s=timeout_s)


def in_order(ensemble: Any) -> Iterator[Any]:
    """The steps so that each comes after those whose tensors it takes; what streams comes last, as it ends the rest."""
    left = list(ensemble.ensemble_scheduling.step)
    while left:
        coming = {value for step in left for value in step.output_map.values()}
        ready = next((step for step in left if not coming & set(step.input_map.values())), None)
        if ready is None:
            raise OfflineError(f"{ensemble.name}: its steps wait for each other. tritonkit check says which.")
        left.remove(ready)
        yield ready


def named(step: Any, answer: Arrays) -> dict[str, np.ndarray]:
    """A step's outputs by the ensemble's names for them."""
    return {step.output_map[key]: array for key, array in answer.items() if key in step.output_map}


def of_rank(array: np.ndarray, rank: int) -> np.ndarray:
    """The array with so many dimensions, as the ensemble scheduler makes it: a batch of one is put before, or taken."""
    if array.ndim == rank - 1:
        return array[np.newaxis]
    return array[0] if array.ndim == rank + 1 and len(array) == 1 else array
