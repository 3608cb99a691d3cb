"""One model under test: loaded from its folder as the server does, asked with arrays, checked on the way."""

from __future__ import annotations

import asyncio
import inspect
import json
import threading
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, TypeAlias

from tritonkit.testing.auto_complete import ModelConfig
from tritonkit.testing.checks import check_request
from tritonkit.testing.config import normalized, read_config
from tritonkit.testing.errors import LoadError, ModelError, RequestRefused, RuleBroken
from tritonkit.testing.importing import ModelModules
from tritonkit.testing.module import backend_module
from tritonkit.testing.pending import Arrays, Pending, as_sent
from tritonkit.testing.requests import Answers, InferenceRequest, error_response
from tritonkit.testing.values import InferenceResponse, Tensor

# What a model may ask by BLS: another loaded model, or a function from arrays to arrays (or to several in turn).
Askable: TypeAlias = "Model | Callable[[Arrays], Arrays | Iterator[Arrays]]"


def load_model(
    folder: Path | str,
    *,
    version: int = 1,
    models: Mapping[str, Askable] | None = None,
    parameters: Mapping[str, str] | None = None,
    profile: str | None = None,
    strict: bool = True,
    timeout_s: float = 10.0,
) -> Model:
    """The model in `folder`, initialized.

    Args:
        folder: the model's folder, with config.pbtxt in it.
        version: which version folder below it.
        models: name -> what answers BLS requests to that name: a `Model`, or a function from a dictionary of arrays to
            one (or to an iterator of them, for a decoupled model).
        parameters: entries of `parameters` in the configuration, in place of or beside those of the file.
        profile: name of a file in `configs/` to take instead of config.pbtxt, as `--model-config-name` does.
        strict: also refuse what the server lets pass (wrong output types and shapes, unknown outputs). Without it the
            answers are what a client of the server gets.
        timeout_s: how long an answer may take before the model counts as hanging.

    Raises:
        LoadError: configuration or code cannot be loaded, or `initialize` raised.
    """
    return Model(Path(folder), version, dict(models or {}), dict(parameters or {}), profile, strict, timeout_s)


class Model:
    """A loaded model. Use it in a `with`, or call `close()`, to have its `finalize` run."""

    def __init__(
        self,
        folder: Path,
        version: int,
        models: dict[str, Askable],
        parameters: dict[str, str],
        profile: str | None,
        strict: bool,
        timeout_s: float,
    ) -> None:
        folder = folder.resolve()
        self.folder = folder
        self.version = version
        self.models = models
        self.strict = strict
        self.timeout_s = timeout_s
        self.config = read_config(folder, profile)
        self.config["parameters"] |= {name: {"string_value": value} for name, value in parameters.items()}
        self.name = str(self.config["name"])
        self._is_initialized = False
        self._executing = threading.Lock()
        self._executor = 0  # the thread in execute()
        self.backend = backend_module(
            name=self.name, version_folder=folder / str(version), runner=self._run_bls, is_ready=self._is_ready
        )
        self._modules = self._loading(lambda: ModelModules(folder / str(version), self.backend))
        self.module = self._modules.model
        if not hasattr(self.module, "TritonPythonModel"):
            raise LoadError(f"{self.name}: module '1.model' has no attribute 'TritonPythonModel'")
        self._complete_config()
        self.instance = self._loading(self.module.TritonPythonModel)
        if not hasattr(self.instance, "execute"):
            raise LoadError(f"{self.name}: TritonPythonModel has no method 'execute'")
        if hasattr(self.instance, "initialize"):
            self._loading(lambda: self.instance.initialize(self.arguments()))
        self._is_initialized = True

    # -- life ----------------------------------------------------------------------------------------------------------

    def __enter__(self) -> Model:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Run the model's `finalize`."""
        if self._is_initialized:
            self._is_initialized = False
            if hasattr(self.instance, "finalize"):
                self.instance.finalize()

    def arguments(self) -> dict[str, str]:
        """What `initialize` gets."""
        group = self.config["instance_group"][0]
        return {
            "model_config": json.dumps(self.config, separators=(",", ":")),
            "model_instance_kind": str(group["kind"]).removeprefix("KIND_"),
            "model_instance_name": f"{group['name']}_0",
            "model_instance_device_id": str((group.get("gpus") or [0])[0]),
            "model_repository": str(self.folder),
            "model_version": str(self.version),
            "model_name": self.name,
        }

    @property
    def is_decoupled(self) -> bool:
        """Whether the model may send any number of responses."""
        return bool(self.config.get("model_transaction_policy", {}).get("decoupled", False))

    @property
    def metrics(self) -> dict[str, Any]:
        """Name -> metric family, of those that the model made."""
        return dict(self.backend.MetricFamily.families)

    def _complete_config(self) -> None:
        complete = getattr(self.module.TritonPythonModel, "auto_complete_config", None)
        if complete is not None:
            completed = self._loading(lambda: complete(ModelConfig(json.dumps(self.config))))
            if not isinstance(completed, ModelConfig):
                raise LoadError(f"{self.name}: auto_complete_config must return the object that it was given")
            self.config = normalized(completed.as_dict())
        for kind in ("input", "output"):
            if not self.config[kind]:
                raise LoadError(f"{self.name}: the configuration has no {kind}")

    def _loading(self, step: Callable[[], Any]) -> Any:
        try:
            return step()
        except LoadError:
            raise
        except Exception as error:
            raise LoadError(f"{self.name}: {type(error).__name__}: {error}") from error

    # -- asking --------------------------------------------------------------------------------------------------------

    def infer(self, inputs: Mapping[str, Any], **options: Any) -> Arrays:
        """The outputs of one request, as arrays (text as bytes).

        Args:
            inputs: name -> array; text and plain numbers are made arrays of the configured type.
            options: outputs, parameters, request_id, correlation_id, timeout, flags: as a client sends them.

        Raises:
            ModelError: the model answered with an error; RequestRefused, below it, if it never saw the request.
            RuleBroken: the model did what the server does not check, or did not answer at all.
        """
        pending = self._pending(inputs, **options)
        self._execute([pending])
        responses = list(pending)
        if len(responses) != 1:
            raise RuleBroken(f"{self.name}: {len(responses)} responses; use stream() for a decoupled model")
        return responses[0]

    def execute(self, requests: Sequence[Mapping[str, Any]]) -> list[Arrays | ModelError]:
        """One `execute` call with several requests, as Triton's batcher makes it; the answer or the error of each."""
        pending = [self._pending(inputs) for inputs in requests]
        self._execute(pending)
        return [next(each.outcomes()) for each in pending]

    def stream(self, inputs: Mapping[str, Any], **options: Any) -> Pending:
        """One request to a decoupled model, running in a thread of its own: iterate over the answers, or cancel it.

        Takes what `infer` takes. A response without tensors is an empty dictionary; the bare end is none at all.
        """
        pending = self._pending(inputs, **options)
        threading.Thread(target=self._execute, args=([pending],), daemon=True).start()
        return pending

    def _pending(
        self,
        inputs: Mapping[str, Any],
        *,
        outputs: Sequence[str] | None = None,
        parameters: Mapping[str, Any] | None = None,
        request_id: str = "",
        correlation_id: int | str = 0,
        timeout: int = 0,
        flags: int = 0,
    ) -> Pending:
        entries = {entry["name"]: entry for entry in self.config["input"]}
        arrays = {name: as_sent(value, entries.get(name)) for name, value in inputs.items() if value is not None}
        check_request(self.config, arrays, outputs or ())
        request = InferenceRequest(
            request_id,
            correlation_id,
            inputs=[Tensor(name, array) for name, array in arrays.items()],
            requested_output_names=outputs or [entry["name"] for entry in self.config["output"]],
            model_name=self.name,
            model_version=self.version,
            timeout=timeout,
            flags=flags,
        )
        request._parameters = json.dumps(dict(parameters or {}), separators=(",", ":"))
        request.answers = Answers(self.is_decoupled)
        batch_size = next(iter(arrays.values())).shape[0] if self.config["max_batch_size"] and arrays else None
        return Pending(self, request, batch_size)

    # -- inside --------------------------------------------------------------------------------------------------------

    def _execute(self, pending: Sequence[Pending]) -> None:
        """One call of the model's `execute`; its outcome goes to the answers of each request."""
        if self._executor == threading.get_ident():
            raise RuleBroken(f"{self.name} asks itself: with one instance that waits for ever on the server")
        answers = [each.answers for each in pending]
        try:
            with self._executing:
                self._executor = threading.get_ident()
                returned = self.instance.execute([each.request for each in pending])
                if inspect.iscoroutine(returned):
                    returned = asyncio.run(returned)
            self._hand_out(returned, answers)
        except Exception as error:
            for each in answers:
                each.fail(self._raised(error, each))
        finally:
            self._executor = 0
            for each in answers:
                each.is_execute_over.set()

    def _raised(self, error: Exception, answers: Answers) -> Exception:
        """What an exception out of `execute` means for one request."""
        if isinstance(error, ModelError | RuleBroken):
            return error
        if answers.is_final:
            hangs = "" if self.is_decoupled else ". On Triton 2.51 the instance then hangs at its next request"
            return RuleBroken(f"{self.name}: execute() raised {type(error).__name__}: {error} after its answer{hangs}")
        return self._failed(f"{type(error).__name__}: {error}\n\nAt:\n{places(error, self.folder)}")

    def _failed(self, words: str) -> ModelError:
        instance = self.arguments()["model_instance_name"]
        return ModelError(f"Failed to process the request(s) for model '{instance}', message: {words}")

    def _hand_out(self, returned: Any, answers: Sequence[Answers]) -> None:
        if returned is None:
            return  # answers come by response senders; those that never do are found by their limit
        if self.is_decoupled:
            raise self._failed(
                f"Python model '{self.arguments()['model_instance_name']}' is using the decoupled mode and the execute "
                "function must return None."
            )
        if not isinstance(returned, list):
            raise self._failed(f"Expected a list in the execute return, found type '{type(returned)}'.")
        if len(returned) != len(answers):
            raise self._failed(
                "Number of InferenceResponse objects do not match the number of InferenceRequest objects. "
                f"InferenceRequest(s) size is:{len(answers)}, and InferenceResponse(s) size is:{len(returned)}\n"
            )
        for response in returned:
            if response is not None and not isinstance(response, InferenceResponse):
                raise self._failed(
                    "Expected an 'InferenceResponse' object in the execute function return list, found type "
                    f"'{type(response)}'."
                )
        for each, response in zip(answers, returned, strict=True):
            # None: this one is answered by its sender. A response after the sender's is dropped by the server.
            if response is not None and not each.is_final:
                each.add(response, final=True)

    def _is_ready(self, name: str, version: str) -> bool:
        return name == self.name or name in self.models

    def _run_bls(self, request: InferenceRequest, decoupled: bool) -> Iterator[InferenceResponse]:
        """The responses of another model to a request that this one made."""
        if not self._is_initialized:
            raise RuleBroken(f"{self.name}: other models can be asked in execute() only, not in initialize or finalize")
        label = f"Model {request.model_name} - Error when running inference: "
        target = self.models.get(request.model_name)
        if target is None:
            yield error_response(
                f"{label}Failed for execute the inference request. Model '{request.model_name}' is not ready."
            )
            return
        if isinstance(target, Model):
            yield from target._answer_bls(request, decoupled, label)
            return
        arrays = {tensor.name(): tensor.as_numpy() for tensor in request.inputs()}
        try:
            given = target(arrays)
            for outputs in [given] if isinstance(given, Mapping) else given:
                wanted = request.requested_output_names() or outputs.keys()
                yield InferenceResponse([Tensor(name, outputs[name]) for name in outputs if name in wanted])
        except ModelError as error:
            yield error_response(error.message)

    def _answer_bls(self, request: InferenceRequest, decoupled: bool, label: str) -> Iterator[InferenceResponse]:
        if self.is_decoupled and not decoupled:
            yield error_response(
                f"{label}Model {self.name} is using the decoupled. The current BLS request call doesn't support models "
                "using the decoupled transaction policy. Please use 'decoupled=True' argument to the 'exec' or "
                "'async_exec' calls for decoupled models.'"
            )
            return
        try:
            pending = self.stream(
                {tensor.name(): tensor.as_numpy() for tensor in request.inputs()},
                outputs=sorted(request.requested_output_names()),
                parameters=json.loads(request.parameters()),
                request_id=request.request_id(),
                correlation_id=request.correlation_id(),
            )
        except RequestRefused as error:
            yield error_response(f"{label}{error.message}")
            return
        yield from pending.responses_for_bls()


def places(error: Exception, folder: Path) -> str:
    """Where in the model's files an exception came from, innermost first, as the server writes it."""
    frames = [
        frame for frame in traceback.extract_tb(error.__traceback__) if Path(frame.filename).is_relative_to(folder)
    ]
    return "".join(f"  {frame.filename}({frame.lineno}): {frame.name}\n" for frame in reversed(frames))
