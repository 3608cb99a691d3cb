"""Field cases as data: the files of each, what must be said, and what a real 2.51 does with the model in question.

The models are those of the base pipeline with one thing changed. `say` holds (code, model, words); `loads` is the
server's verdict on `model`, None where no server is asked (another product, or it ends the server).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

CODE = """import json

import numpy as np
import triton_python_backend_utils as pb_utils


class TritonPythonModel:
    def initialize(self, args):
        self.config = json.loads(args["model_config"])

    def execute(self, requests):
        return [self.answer(request) for request in requests]

    def answer(self, request):
        batch = [1] if self.config["max_batch_size"] else []
        return pb_utils.InferenceResponse(
            [
                pb_utils.Tensor(
                    one["name"],
                    np.zeros(batch + [abs(n) for n in one["dims"]], pb_utils.triton_string_to_numpy(one["data_type"])),
                )
                for one in self.config["output"]
            ]
        )
"""


def tensor(text: str) -> str:
    """`{ name: ... }` of `NAME TYPE [dims] more fields`."""
    name, kind, dims, *more = text.split(" ", 3)
    return f'{{ name: "{name}" data_type: TYPE_{kind} dims: {dims} {" ".join(more)} }}'


def python(inputs: str, outputs: str, batch: int = 8, more: str = "") -> str:
    """The config of a Python model; tensors are divided by `|`."""
    sides = [
        f"{side} [ {', '.join(tensor(one.strip()) for one in text.split('|'))} ]"
        for side, text in (("input", inputs), ("output", outputs))
    ]
    return "\n".join(['backend: "python"', f"max_batch_size: {batch}", *sides, more])


def step(model: str, inputs: str, outputs: str, version: str = "model_version: -1") -> str:
    """A step; maps are written `KEY=value`."""
    maps = "".join(
        f' {field} {{ key: "{key}" value: "{value}" }}'
        for field, text in (("input_map", inputs), ("output_map", outputs))
        for key, _, value in (pair.partition("=") for pair in text.split())
    )
    return f'step {{ model_name: "{model}" {version}{maps} }}'


def ensemble(
    inputs: str, outputs: str, *steps: str, batch: int = 8, more: str = "", head: str = 'platform: "ensemble"'
) -> str:
    """The config of an ensemble."""
    sides = [
        f"{side} [ {', '.join(tensor(one.strip()) for one in text.split('|'))} ]"
        for side, text in (("input", inputs), ("output", outputs))
        if text
    ]
    lines = [
        head,
        f"max_batch_size: {batch}",
        *sides,
        "ensemble_scheduling {",
        *(f"  {one}" for one in steps),
        "}",
        more,
    ]
    return "\n".join(lines)


PRE = python("RAW UINT8 [-1]", "IMG FP32 [3,64,64] | SCALE FP32 [4]")
DET = python("images FP32 [3,64,64]", "output0 FP32 [84,84]")
POST = python("PRED FP32 [84,84] | SCALE FP32 [4]", "BOXES FP32 [-1,6]")
STEP_PRE = step("pre", "RAW=RAW", "IMG=img SCALE=sc")
STEP_DET = step("det", "images=img", "output0=pred")
STEP_POST = step("post", "PRED=pred SCALE=sc", "BOXES=BOXES")
PIPE = ensemble("RAW UINT8 [-1]", "BOXES FP32 [-1,6]", STEP_PRE, STEP_DET, STEP_POST)
BASE = {"pre": PRE, "det": DET, "post": POST}
ID = python("X FP32 [3]", "Y FP32 [3]", 0)
DEC = python("X FP32 [3]", "Y FP32 [3]", 0, "model_transaction_policy { decoupled: true }")
JOIN = python("A FP32 [3] | B FP32 [3]", "C FP32 [3]", 0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One field case, or one form of it.

    Attributes:
        configs: text of each model's config by name.
        files: further files; a model without version folder has its name in `bare`.
        model: the model that the server is asked about.
    """

    id: str
    configs: Mapping[str, str]
    say: tuple[tuple[str, str, str], ...]
    model: str = "pipe"
    loads: bool | None = False
    files: Mapping[str, str | bytes | None] = field(default_factory=dict)
    bare: tuple[str, ...] = ()
    release: str = "embedded"
    profile: str = "cpu"

    def tree(self, prefix: str = "") -> dict[str, str | bytes | None]:
        """Every file of the repository; with a prefix before each model's name, in steps too."""
        result: dict[str, str | bytes | None] = {}
        for name, text in self.configs.items():
            for other in self.configs:
                text = text.replace(f'model_name: "{other}"', f'model_name: "{prefix}{other}"')
            result[f"{prefix}{name}/config.pbtxt"] = text
            if name in self.bare:
                continue
            is_python = 'backend: "python"' in text and "ensemble_scheduling" not in text
            result[f"{prefix}{name}/1/{'model.py' if is_python else '.keep'}"] = CODE if is_python else ""
        result.update({f"{prefix}{name}": content for name, content in self.files.items()})
        return result


def pipe(id: str, text: str, *say: tuple[str, str], loads: bool | None = False, **more: object) -> Case:
    """A case of the base pipeline whose ensemble is this text."""
    return Case(
        id=id,
        configs={**BASE, "pipe": text, **more},  # type: ignore[dict-item]
        say=tuple((code, "pipe", words) for code, words in say),
        loads=loads,
    )


CASES: tuple[Case, ...] = (
    pipe("base", PIPE, loads=True),
    # Ensembles
    pipe(
        "ENS-03",
        PIPE.replace('key: "PRED" value: "pred"', 'key: "PRED" value: "preds"'),
        ("TK306", "step 2 (post), input PRED: no step makes preds, and it is no input of pipe; did you mean pred?"),
        ("TK311", "nothing reads pred; did you mean preds?"),
    ),
    pipe(
        "ENS-03 case",
        PIPE.replace('key: "PRED" value: "pred"', 'key: "PRED" value: "PRED"'),
        ("TK306", "no step makes PRED, and it is no input of pipe; did you mean pred?"),
        ("TK311", "nothing reads pred; did you mean PRED?"),
    ),
    pipe(
        "ENS-04",
        ensemble("RAW UINT8 [-1] | THRESH FP32 [1]", "BOXES FP32 [-1,6]", STEP_PRE, STEP_DET, STEP_POST),
        (
            "TK310",
            "no step reads THRESH, every input must be read by a step. Map THRESH to a step's input, or take it out",
        ),
    ),
    pipe(
        "ENS-04 hint",
        ensemble("RAW UINT8 [-1] | THRESH FP32 [1]", "BOXES FP32 [-1,6]", STEP_PRE, STEP_DET, STEP_POST),
        ("TK310", "(T of step 2 (post) could take it)"),
        post=python("PRED FP32 [84,84] | SCALE FP32 [4] | T FP32 [1] optional: true", "BOXES FP32 [-1,6]"),
    ),
    pipe(
        "ENS-06 a",
        PIPE.replace('key: "images"', 'key: "image"'),
        ("TK303", "step 1 (det), input image: det has no input image; did you mean images?, one of images is needed"),
    ),
    pipe(
        "ENS-06 b",
        PIPE.replace('key: "output0"', 'key: "output"'),
        ("TK304", "step 1 (det), output output: det has no output output; did you mean output0?"),
    ),
    *(
        Case(
            id=f"ENS-07 {form}",
            configs={
                "pre0": python("RAW UINT8 [-1]", f"IMG FP32 [3,64,64] {maker}", 0),
                "det1": python(f"images FP32 {reader}", "output0 FP32 [84,84]", 0),
                "pipe": ensemble(
                    "RAW UINT8 [-1]",
                    "pred FP32 [84,84]",
                    step("pre0", "RAW=RAW", "IMG=img"),
                    step("det1", "images=img", "output0=pred"),
                    batch=0,
                ),
            },
            say=say,
            loads=not say,
        )
        for form, maker, reader, say in (
            (
                "broken",
                "",
                "[1,3,64,64]",
                (("TK402", "pipe", "On det1 write dims: [3,64,64] reshape { shape: [1,3,64,64] }"),),
            ),
            (
                "attempted",
                "reshape { shape: [1,3,64,64] }",
                "[1,3,64,64]",
                (("TK402", "pipe", "Dims are compared, not what reshape makes of them"),),
            ),
            ("fixed", "", "[3,64,64] reshape { shape: [1,3,64,64] }", ()),
        )
    ),
    Case(
        id="ENS-08",
        configs={
            "pre": PRE,
            "det1": python("images FP32 [1,3,64,64]", "output0 FP32 [1,84,84]", 0),
            "pipe": ensemble(
                "RAW UINT8 [-1]",
                "pred FP32 [84,84]",
                step("pre", "RAW=RAW", "IMG=img"),
                step("det1", "images=img", "output0=pred"),
            ),
        },
        say=(
            ("TK404", "pipe", "pipe takes batches of 8, and det1 takes 1 of img"),
            ("TK404", "pipe", "Write max_batch_size: 1"),
        ),
        loads=True,
    ),
    pipe(
        "ENS-11",
        PIPE.replace('model_name: "pre" model_version: -1', 'model_name: "pre"'),
        ("TK313", "step 0 (pre): model_version is left out, -1 for the latest version, or one of 1, is needed"),
    ),
    pipe(
        "ENS-11 7",
        PIPE.replace('model_name: "pre" model_version: -1', 'model_name: "pre" model_version: 7'),
        ("TK313", "step 0 (pre): pre has no version 7"),
    ),
    Case(
        id="ENS-12 no folder",
        configs={**BASE, "pipe": PIPE},
        bare=("pipe",),
        say=(("TK801", "pipe", "there is no version folder"),),
    ),
    Case(
        id="ENS-12 v1",
        configs={"m": ID},
        bare=("m",),
        files={"m/v1/model.py": CODE},
        say=(
            ("TK801", "m", "there is no version folder (v1 is none)"),
            ("TK812", "m", "v1 is not taken for a version"),
        ),
        model="m",
    ),
    Case(
        id="ENS-12 policy",
        configs={"m": ID + "version_policy { specific { versions: [ 3 ] } }"},
        say=(("TK801", "m", "the policy asks for 3, there is 1"),),
        model="m",
    ),
    Case(
        id="ENS-14 join",
        configs={
            "pre": ID,
            "dec": DEC,
            "join": JOIN,
            "pipe": ensemble(
                "X FP32 [3]",
                "C FP32 [3]",
                step("pre", "X=X", "Y=pre"),
                step("dec", "X=pre", "Y=tok"),
                step("join", "A=pre B=tok", "C=C"),
                batch=0,
            ),
        },
        say=(
            ("TK501", "pipe", "step 2 (join)"),
            ("TK501", "pipe", "it reads pre (no decoupled step) and tok (decoupled step 1 (dec))"),
            ("TK501", "pipe", "Pass pre through dec as further inputs and outputs"),
        ),
    ),
    Case(
        id="ENS-14 outputs",
        configs={
            "pre": ID,
            "dec": DEC,
            "pipe": ensemble(
                "X FP32 [3]",
                "pre FP32 [3] | tok FP32 [3]",
                step("pre", "X=X", "Y=pre"),
                step("dec", "X=pre", "Y=tok"),
                batch=0,
            ),
        },
        say=(("TK502", "pipe", "it returns pre (no decoupled step) and tok (decoupled step 1 (dec))"),),
    ),
    Case(
        id="ENS-15",
        configs={
            "pre": ID,
            "dec": DEC,
            "pipe": ensemble(
                "X FP32 [3]",
                "Y FP32 [3]",
                step("pre", "X=X", "Y=pre"),
                step("dec", "X=pre", "Y=tok"),
                step("pre", "X=tok", "Y=Y"),
                batch=0,
            ),
        },
        say=(("TK504", "pipe", "pipe is decoupled because of step 1 (dec)"),),
        loads=True,
    ),
    *(
        pipe(
            f"ENS-16 {name}",
            PIPE + text,
            ("TK601", f"{name} is given on an ensemble, it belongs to the models of the steps"),
        )
        for name, text in (
            ("instance_group", "instance_group [ { count: 2 kind: KIND_GPU } ]"),
            ("optimization", "optimization { input_pinned_memory { enable: true } }"),
            ("model_warmup", 'model_warmup [ { name: "w" } ]'),
        )
    ),
    pipe(
        "ENS-21 a",
        PIPE + 'backend: "python"',
        ("TK113", "it has steps with platform 'ensemble' and backend 'python'"),
    ),
    pipe(
        "ENS-21 b",
        PIPE.replace('platform: "ensemble"', 'backend: "ensemble"'),
        ("TK113", "platform ensemble and no backend are needed"),
    ),
    *(
        Case(
            id=f"ENS-23 {form}",
            configs={
                "tok": python(f"TXT STRING [1] {inner}", "IDS INT32 [4]"),
                "pipe": ensemble(f"TXT STRING [1] {outer}", "IDS INT32 [4]", step("tok", "TXT=TXT", "IDS=IDS")),
            },
            say=say,
            loads=not say,
        )
        for form, inner, outer, say in (
            (
                "broken",
                "",
                "reshape { shape: [ ] }",
                (("TK402", "pipe", "Take the reshape off pipe; on the model of the step it is allowed"),),
            ),
            ("fixed", "reshape { shape: [ ] }", "", ()),
        )
    ),
    Case(
        id="ENS-24 a",
        configs={
            "join": JOIN,
            "id": ID,
            "pipe": ensemble(
                "A FP32 [3]",
                "C FP32 [3]",
                step("join", "A=A B=loop", "C=mid"),
                step("id", "X=mid", "Y=loop"),
                step("id", "X=mid", "Y=C"),
                batch=0,
            ),
        },
        say=(("TK309", "pipe", "steps wait for each other: loop -> join -> mid -> id -> loop"),),
    ),
    Case(
        id="ENS-24 b",
        configs={"pipe": ensemble("X FP32 [3]", "Y FP32 [3]", step("pipe", "X=X", "Y=Y"), batch=0)},
        say=(("TK312", "pipe", "it contains itself: pipe -> pipe"),),
    ),
    Case(
        id="ENS-24 c",
        configs={"note": ID, "pipe": ensemble("X FP32 [3]", "Y FP32 [3]", step("nope", "X=X", "Y=Y"), batch=0)},
        say=(("TK302", "pipe", "there is no model nope in the repository; did you mean note?"),),
    ),
    Case(
        id="ENS-25",
        configs={
            "same": python("ids INT32 [-1]", "ids2 INT32 [-1]", 0),
            "pipe": ensemble(
                "ids INT32 [-1]",
                "out INT32 [-1]",
                step("same", "ids=ids", "ids2=ids"),
                step("same", "ids=ids", "ids2=out"),
                batch=0,
            ),
        },
        say=(("TK308", "pipe", "ids is an input of pipe already"),),
        loads=True,
    ),
    Case(
        id="ENS-25 two steps",
        configs={
            "same": python("ids INT32 [-1]", "ids2 INT32 [-1]", 0),
            "pipe": ensemble(
                "ids INT32 [-1]",
                "P INT32 [-1]",
                step("same", "ids=ids", "ids2=P"),
                step("same", "ids=ids", "ids2=P"),
                batch=0,
            ),
        },
        say=(("TK307", "pipe", "P is already made by step 0 (same)"),),
    ),
    Case(
        id="ENS-26",
        configs={"m": DEC + "response_cache { enable: true }"},
        say=(("TK607", "m", "response_cache with a decoupled model"),),
        model="m",
    ),
    Case(
        id="ENS-26 sequences",
        configs={"m": ID + "sequence_batching { } response_cache { enable: true }"},
        say=(("TK607", "m", "response_cache with sequence_batching"),),
        model="m",
    ),
    Case(
        id="ENS-26 through a step",
        configs={
            "dec": DEC,
            "pipe": ensemble(
                "X FP32 [3]", "Y FP32 [3]", step("dec", "X=X", "Y=Y"), batch=0, more="response_cache { enable: true }"
            ),
        },
        say=(("TK607", "pipe", "response_cache with a decoupled model"),),
    ),
    # Batching and queues
    Case(
        id="ENS-26 flag",
        configs={"m": ID + "response_cache { enable: true }"},
        say=(("TK612", "m", "Start the server with --cache-config"),),
        model="m",
        loads=True,
    ),
    Case(
        id="BAT-02",
        configs={"m": ID + "dynamic_batching { max_queue_delay_microseconds: 300000 }"},
        say=(("TK602", "m", "max_queue_delay_microseconds with max_batch_size 0"),),
        model="m",
        loads=True,
    ),
    Case(
        id="BAT-05 python",
        configs={"m": python("X FP32 [-1,3]", "Y FP32 [3]", 16, "dynamic_batching { preserve_ordering: true }")},
        say=(),
        model="m",
        loads=True,
    ),
    Case(
        id="BAT-09",
        configs={
            "m": python(
                "A FP32 [-1] allow_ragged_batch: true", "Y FP32 [3]", 8, "dynamic_batching { preserve_ordering: true }"
            )
        },
        say=(("TK635", "m", "execute() gets requests of different lengths together"),),
        model="m",
        loads=True,
    ),
    # Instances and devices
    Case(
        id="INS-01",
        configs={"m": ID + "instance_group [ { kind: KIND_GPU count: 1 } ]"},
        say=(("TK701", "m", "KIND_GPU in the cpu profile, KIND_CPU is needed there"),),
        model="m",
    ),
    Case(
        id="INS-01 tensorrt",
        configs={
            "m": ID.replace('backend: "python"', 'platform: "tensorrt_plan"') + "instance_group [ { kind: KIND_CPU } ]"
        },
        files={"m/1/model.plan": "", "m/1/plan.json": '{"container": "24.10"}'},
        say=(("TK704", "m", "KIND_CPU on a TensorRT model, KIND_GPU is needed"),),
        model="m",
        loads=None,
        release="24.10-py3",
        profile="gpu",
    ),
    Case(
        id="INS-04",
        configs={"m": 'backend: "vllm"\ninstance_group [ { count: 4 kind: KIND_MODEL } ]'},
        files={"m/1/model.json": '{"model": "x"}'},
        say=(("TK705", "m", "4 instances of KIND_MODEL, one is needed"),),
        model="m",
        loads=None,
        release="26.07-vllm",
        profile="gpu",
    ),
    Case(
        id="INS-04 gpus",
        configs={"m": ID + "instance_group [ { kind: KIND_MODEL gpus: [ 0 ] } ]"},
        say=(("TK702", "m", "gpus [0] with KIND_MODEL, gpus go with KIND_GPU only"),),
        model="m",
    ),
    Case(
        id="INS-05",
        configs={
            "m": ID
            + "instance_group [ { kind: KIND_CPU count: 2 "
            + 'rate_limiter { resources [ { name: "R" count: 4 } ] priority: 1 } } ]'
        },
        say=(("TK707", "m", "--rate-limit=execution_count --rate-limit-resource=R:4"),),
        model="m",
        loads=True,
    ),
    # Python backend
    Case(
        id="PYB-01 a",
        configs={
            "on_gpu": ID
            + "instance_group [ { kind: KIND_GPU } ] "
            + 'parameters { key: "FORCE_CPU_ONLY_INPUT_TENSORS" value { string_value: "no" } }',
            "m": ID + "instance_group [ { kind: KIND_GPU } ]",
            "pipe": ensemble(
                "X FP32 [3]", "Y FP32 [3]", step("on_gpu", "X=X", "Y=t"), step("m", "X=t", "Y=Y"), batch=0
            ),
        },
        say=(("TK911", "pipe", "X lies on the GPU and is moved to the host for m, which runs on the GPU"),),
        loads=None,
        release="24.10-py3",
        profile="gpu",
    ),
    Case(
        id="PYB-01 b",
        configs={"m": ID + 'parameters { key: "FORCE_CPU_ONLY_INPUT_TENSORS" value { string_value: "false" } }'},
        say=(("TK131", "m", 'FORCE_CPU_ONLY_INPUT_TENSORS is \'false\', "yes" or "no" is needed'),),
        model="m",
    ),
    Case(
        id="PYB-01 c",
        configs={"m": ID + 'parameters { key: "force_cpu_only_input_tensors" value { string_value: "no" } }'},
        say=(("TK132", "m", "FORCE_CPU_ONLY_INPUT_TENSORS is its spelling"),),
        model="m",
        loads=True,
    ),
    Case(
        id="PYB-05",
        configs={
            "m": ID + 'parameters { key: "EXECUTION_ENV_PATH" value { string_value: "/home/someone/envs/env.tar.gz" } }'
        },
        say=(("TK133", "m", 'write "$$TRITON_MODEL_DIRECTORY/env.tar.gz"'),),
        model="m",
    ),
    # Whisper and YOLO
    Case(
        id="WHI-01",
        configs={
            "features": python("AUDIO FP32 [-1]", "MEL FP32 [80,3000]", 0),
            "encoder": python("mel FP32 [128,3000]", "out FP32 [1500,8]"),
            "pipe": ensemble(
                "AUDIO FP32 [-1]",
                "out FP32 [1500,8]",
                step("features", "AUDIO=AUDIO", "MEL=mel"),
                step("encoder", "mel=mel", "out=out"),
                batch=0,
            ),
        },
        say=(
            (
                "TK402",
                "pipe",
                "mel is [80,3000] from features, [128,3000] with a batch in front [-1,128,3000] is needed",
            ),
        ),
    ),
    Case(
        id="YOL-03",
        configs={"m": python("images FP32 [16,3,64,64]", "output0 FP32 [16,300,6]", 0)},
        say=(("TK858", "m", "every request must have exactly 16 rows"),),
        model="m",
        loads=True,
    ),
    Case(
        id="YOL-07",
        configs={"m": ID.replace('backend: "python"', 'backend: "tensorrt"')},
        files={"m/1/model.plan": "", "m/1/plan.json": '{"container": "24.03", "compute_capability": "8.6"}'},
        say=(("TK861", "m", "the plan was built with 24.03, one built with 24.10 is needed"),),
        model="m",
        loads=None,
        release="24.10-py3",
        profile="gpu",
    ),
    Case(
        id="YOL-07 no manifest",
        configs={"m": ID.replace('backend: "python"', 'backend: "tensorrt"')},
        files={"m/1/model.plan": ""},
        say=(("TK862", "m", "there is no plan.json beside the plan"),),
        model="m",
        loads=None,
        release="24.10-py3",
        profile="gpu",
    ),
    # Repository and deployment
    Case(
        id="DEP-02",
        configs={"m": ID},
        files={"reports/x.txt": ""},
        say=(("TK816", "reports", "this folder holds neither a config nor a model"),),
        model="reports",
    ),
    Case(
        id="DEP-02 hidden",
        configs={"m": ID},
        files={".ipynb_checkpoints/x": ""},
        say=(("TK816", ".ipynb_checkpoints", "this folder holds neither a config nor a model"),),
        model=".ipynb_checkpoints",
    ),
    Case(
        id="DEP-03",
        configs={"m": ID + "dynamic_batching { max_queue_delay_microseconds: ${delay} }"},
        say=(("TK108", "m", "the placeholder ${delay}"),),
        model="m",
    ),
    Case(
        id="DEP-03 in a string",
        configs={"m": ID + 'parameters { key: "a" value { string_value: "${delay}" } }'},
        say=(("TK109", "m", "the placeholder ${delay}"),),
        model="m",
        loads=True,
    ),
    Case(
        id="DEP-06 a",
        configs={"m": ID + "max_queue_delay_microseconds: 5"},
        say=(("TK101", "m", "Move it to dynamic_batching.max_queue_delay_microseconds"),),
        model="m",
    ),
    Case(
        id="DEP-06 b",
        configs={"m": python("A FP32 [3] | A FP32 [3]", "Y FP32 [3]", 0)},
        say=(("TK204", "m", "A is declared 2 times"),),
        model="m",
        loads=True,
    ),
    Case(
        id="DEP-06 c",
        configs={"m": python("A FP32 [0]", "Y FP32 [3]", 0)},
        say=(("TK203", "m", "dims are [0], sizes of 1 or more are needed, -1 where one varies"),),
        model="m",
    ),
    *(
        Case(
            id=f"DEP-09 {form}",
            configs={
                "m": python(
                    f"A FP32 [3]{more}",
                    "Y FP32 [3]",
                    4,
                    f'model_warmup {{ name: "w" batch_size: {batch} inputs {{ key: "A" value {{ '
                    f"data_type: TYPE_FP32 dims: {dims} zero_data: true }} }} }}",
                )
            },
            say=say,
            model="m",
            loads=None if form == "b" else not say,
        )
        for form, dims, batch, more, say in (
            (
                "a",
                "[4,3]",
                4,
                "",
                (("TK713", "m", "the sample has dims [4,3], sizes that fit [3]"),),
            ),
            ("b", "[3]", 8, "", (("TK714", "m", "batch_size 8 with max_batch_size 4"),)),
            ("c", "[3]", 4, " | C FP32 [3]", (("TK712", "m", "the sample w has no C"),)),
            ("d", "[-1]", 4, "", (("TK713", "m", "the sample has dims [-1]"),)),
            ("good", "[3]", 4, "", ()),
        )
    ),
)
