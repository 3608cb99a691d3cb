"""The language model: chat messages or a prompt in, the answer streamed out by a vLLM engine.

Decoupled. TRANSCRIPT and DETECTIONS pass through in the first response, so that one ensemble can return everything.
The work is in the files beside this one; the engine's arguments are in model.json.
"""

import json
import os
from pathlib import Path
from typing import Any

import llm_cores
import llm_engine
import llm_requests
import triton_python_backend_utils as pb_utils
from llm_metrics import Measures
from llm_replies import Replies
from llm_running import Engine
from llm_service import Service


class TritonPythonModel:
    """One engine."""

    def initialize(self, args: dict[str, str]) -> None:
        folder = Path(args["model_repository"]) / args["model_version"]
        kind, parameters = args["model_instance_kind"], parameters_of(args["model_config"])
        available = llm_cores.available_cores()
        llm_engine.use_utf8()
        given = llm_engine.read_model_json((folder / llm_engine.MODEL_JSON).read_text(encoding="utf-8"))
        cores = available
        if kind == "CPU" and llm_engine.device_count(given) == 1:
            cores = llm_cores.cores_of(llm_cores.setting_of(parameters, os.environ), available)
        os.environ.update(
            llm_engine.engine_environment(
                parameters,
                kind=kind,
                device_id=args["model_instance_device_id"],
                local=llm_engine.is_local(given, folder),
                eager=given.get("enforce_eager", True),
                present=os.environ,
                threads=llm_cores.threads_of(cores, available),
            )
        )
        arguments = llm_engine.check_arguments(given, folder, llm_engine.known_arguments())
        llm_engine.check_instance(arguments, kind)
        template = folder / "chat_template.jinja"
        log = pb_utils.Logger.log_error
        chat_template = template.read_text(encoding="utf-8") if template.exists() else None
        engine = Engine(arguments, log, Measures(args["model_name"]), cores)
        self.service = Service(engine, chat_template, llm_engine.response_gap_s(parameters), log)
        self.service.start()

    def execute(self, requests: list[Any]) -> None:
        """Hand the requests to the engine; their responses come later, from its thread."""
        for request in requests:
            replies = Replies(request)
            try:
                lifeline = llm_requests.lifeline_of(request)
                if lifeline is None:
                    self.service.answer(llm_requests.read_ask(request), replies)
                else:
                    self.service.hold(lifeline, replies)
            except llm_requests.InputError as error:
                replies.fail_as_wrong_input(str(error))

    def is_ready(self) -> bool:
        """Servers from 26.03 on ask this; older ones see the failed requests."""
        return self.service.is_ready()

    def finalize(self) -> None:
        self.service.stop()


def parameters_of(model_config: str) -> dict[str, str]:
    """The `parameters` of config.pbtxt."""
    return {key: value["string_value"] for key, value in json.loads(model_config).get("parameters", {}).items()}
