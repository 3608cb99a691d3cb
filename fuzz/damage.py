"""Ways to break a config or a folder: aimed ones, and blind ones that the field table guides."""

from __future__ import annotations

import copy
import random
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from builder.fields import ROOT, FieldInfo, enums, messages

Config = dict[str, Any]
_NUMBERS = (-2, -1, 0, 1, 2, 3, 4, 7, 9, 100, 2**31 - 1, 2**31, 2**63 - 1)
_WORDS = ("", "x", "p00", "p01", "I0", "O0", "x0", "t0_O0", "python", "ensemble", "model.py", "nope", "A-B")
# Fields that start processes, files of the machine, or ends of the server that have tests of their own.
_LEAVE = {"count", "metric_tags", "default_model_filename", "runtime", "label_filename", "secondary_devices"}


def damaged_config(config: Config, chance: random.Random) -> Config:
    """A copy of the config with one thing changed."""
    changed = copy.deepcopy(config)
    aimed = _ENSEMBLE if "ensemble_scheduling" in changed else _MODEL
    if chance.random() < 0.6:
        chance.choice(aimed)(changed, chance)
    else:
        _blind(changed, chance)
    return changed


def damaged_folder(
    versions: Sequence[str], chance: random.Random, share: float
) -> tuple[tuple[str, ...], dict[str, str]]:
    """Version folders and further files, now and then wrong ones."""
    if chance.random() >= share:
        return tuple(versions), {}
    return chance.choice(
        [
            ((), {}),
            (("v1",), {}),
            (("01",), {}),
            (("0",), {}),
            (("1", "x"), {}),
            (("2",), {}),
            (("1", "2", "007"), {}),
            (("1",), {"README": "text"}),
            (("1",), {"configs/gpu.pbtxt": "nonsense {"}),
        ]
    )


# Blind changes


def _blind(config: Config, chance: random.Random) -> None:
    places = list(_places(config, ROOT))
    message, name = chance.choice(places)
    target, kind = message
    known = messages().get(kind, {})
    action = chance.randrange(5)
    if action == 0 and target:
        target.pop(name, None)
    elif action == 1:
        info = chance.choice(list(known.values())) if known else None
        if info is not None and info.name not in _LEAVE:
            target[info.name] = _random_value(info, chance, 0)
    elif action == 2 and name in known and name not in _LEAVE:
        target[name] = _random_value(known[name], chance, 0)
    elif action == 3 and isinstance(target.get(name), list) and target[name]:
        target[name].append(copy.deepcopy(chance.choice(target[name])))
    elif action == 4 and isinstance(target.get(name), list) and target[name]:
        target[name].pop(chance.randrange(len(target[name])))
    else:
        target[chance.choice(["bogus", "Name", "dim", "inputs", "max_batchsize"])] = chance.choice([1, "x", {}])


def _places(config: Config, message: str) -> Iterator[tuple[tuple[Config, str], str]]:
    """Every (message, its type) and field name in the config."""
    known = messages().get(message, {})
    for name, value in config.items():
        yield (config, message), name
        info = known.get(name)
        if info is None or info.kind != "message":
            continue
        inside = (
            value.values()
            if info.map_key and isinstance(value, dict)
            else value
            if isinstance(value, list)
            else [value]
        )
        for one in inside:
            if isinstance(one, dict):
                yield from _places(one, info.type)


def _random_value(info: FieldInfo, chance: random.Random, depth: int) -> Any:
    if info.map_key is not None:
        key = chance.choice(_WORDS) if info.map_key == "string" else chance.choice([0, 1, 2])
        return {key: _one_value(info, chance, depth)}
    if info.repeated:
        return [_one_value(info, chance, depth) for _ in range(chance.choice([0, 1, 1, 2]))]
    return _one_value(info, chance, depth)


def _one_value(info: FieldInfo, chance: random.Random, depth: int) -> Any:
    if info.kind == "enum":
        return chance.choice([*enums()[info.type], *(["TYPE_FP"] if chance.random() < 0.1 else [])])
    if info.kind == "message":
        known = [one for one in messages().get(info.type, {}).values() if one.name not in _LEAVE]
        picked = chance.sample(known, k=min(len(known), chance.choice([0, 1, 2, 3]))) if depth < 3 else []
        return {one.name: _random_value(one, chance, depth + 1) for one in picked}
    if info.type == "bool":
        return chance.random() < 0.5
    if info.type in ("float", "double"):
        return chance.choice([0.0, 0.5, 1.0, 2.0, -1.0])
    if info.type == "string":
        return chance.choice(_WORDS)
    return chance.choice(_NUMBERS)


# Aimed changes


def _some_tensor(config: Config, chance: random.Random) -> Config:
    tensors = [*config.get("input", ()), *config.get("output", ())]
    return chance.choice(tensors) if tensors else {}


def _other_dims(config: Config, chance: random.Random) -> None:
    _some_tensor(config, chance)["dims"] = chance.choice([[], [0], [-2], [1], [3], [-1], [2, 3], [-1, -1, -1], [4]])


def _other_type(config: Config, chance: random.Random) -> None:
    _some_tensor(config, chance)["data_type"] = chance.choice(["TYPE_INT64", "TYPE_FP32", "TYPE_INVALID", "TYPE_BF16"])


def _no_field(config: Config, chance: random.Random) -> None:
    tensor = _some_tensor(config, chance)
    if tensor:
        tensor.pop(chance.choice(sorted(tensor)))


def _reshape(config: Config, chance: random.Random) -> None:
    _some_tensor(config, chance)["reshape"] = {
        "shape": chance.choice([[], [1], [3], [0], [-1], [1, 3], [3, 1], [2, 2]])
    }


def _tensor_field(config: Config, chance: random.Random) -> None:
    field, value = chance.choice(
        [
            ("is_shape_tensor", True),
            ("format", "FORMAT_NCHW"),
            ("allow_ragged_batch", True),
            ("optional", True),
            ("is_non_linear_format_io", True),
            ("format", 7),
        ]
    )
    inputs = config.get("input") or [{}]
    chance.choice(inputs)[field] = value


def _batch_size(config: Config, chance: random.Random) -> None:
    config["max_batch_size"] = chance.choice([-1, 0, 1, 2, 4, 5, 8, 9, 64])


def _doubled_tensor(config: Config, chance: random.Random) -> None:
    side = chance.choice(["input", "output"])
    if config.get(side):
        config[side].append(copy.deepcopy(chance.choice(config[side])))


def _name(config: Config, chance: random.Random) -> None:
    config["name"] = chance.choice(["", "another", "p00"])


def _scheduler(config: Config, chance: random.Random) -> None:
    sizes = chance.choice([[], [0], [-1], [1], [3], [9]])
    config["dynamic_batching"] = {
        "preferred_batch_size": sizes,
        **chance.choice(
            [
                {},
                {"priority_levels": 2},
                {"priority_levels": 2, "default_priority_level": 3},
                {"default_priority_level": 1},
                {"preserve_ordering": True, "priority_levels": 2, "default_priority_level": 1},
                {"preserve_ordering": True, "default_queue_policy": {"timeout_action": "DELAY"}},
                {
                    "preserve_ordering": True,
                    "default_queue_policy": {"timeout_action": "DELAY", "default_timeout_microseconds": 1},
                },
                {"priority_queue_policy": {3: {}}},
                {"priority_levels": 1, "default_priority_level": 1, "priority_queue_policy": {3: {}}},
                {"priority_levels": 1, "default_priority_level": 1, "priority_queue_policy": {0: {}}},
            ]
        ),
    }
    if chance.random() < 0.8:
        config.pop("sequence_batching", None)


def _sequences(config: Config, chance: random.Random) -> None:
    pair = {"int32_false_true": [0, 1]}
    control = chance.choice(
        [
            {"name": "C"},
            {"control": [{"kind": "CONTROL_SEQUENCE_END", **pair}]},
            {"name": "C", "control": [{"kind": "CONTROL_SEQUENCE_READY"}]},
            {"name": "C", "control": [{"kind": "CONTROL_SEQUENCE_READY", "int32_false_true": [0]}]},
            {"name": "C", "control": [{"kind": "CONTROL_SEQUENCE_READY", **pair, "bool_false_true": [False, True]}]},
            {"name": "C", "control": [{"kind": "CONTROL_SEQUENCE_CORRID"}]},
            {"name": "C", "control": [{"kind": "CONTROL_SEQUENCE_CORRID", "data_type": "TYPE_FP32"}]},
            {"name": "C", "control": [{"kind": "CONTROL_SEQUENCE_CORRID", "data_type": "TYPE_INT64", **pair}]},
            {
                "name": "C",
                "control": [{"kind": "CONTROL_SEQUENCE_START", **pair}, {"kind": "CONTROL_SEQUENCE_START", **pair}],
            },
        ]
    )
    strategy: Config = chance.choice(
        [
            {},
            {"direct": {"minimum_slot_utilization": 1.5}},
            {"oldest": {"preferred_batch_size": [chance.choice([0, 3, 9])]}},
        ]
    )
    config["sequence_batching"] = {"control_input": [control] * chance.choice([1, 1, 2]), **strategy}
    if chance.random() < 0.8:
        config.pop("dynamic_batching", None)


def _initial_state(config: Config, chance: random.Random) -> None:
    initial = {"name": "i", "data_type": "TYPE_FP32", "dims": [2], "zero_data": True}
    for _ in range(chance.choice([1, 1, 2])):
        field, value = chance.choice(
            [
                ("name", ""),
                ("data_type", "TYPE_INT32"),
                ("dims", [-1]),
                ("dims", [3]),
                ("dims", [2, 1]),
                ("zero_data", None),
            ]
        )
        initial[field] = value
    initial = {key: value for key, value in initial.items() if value is not None}
    state = {"input_name": "SI", "output_name": "SO", "data_type": "TYPE_FP32", "dims": chance.choice([[2], [-1]])}
    config.pop("dynamic_batching", None)
    config["sequence_batching"] = {"state": [{**state, "initial_state": [initial] * chance.choice([1, 1, 1, 2])}]}


def _instances(config: Config, chance: random.Random) -> None:
    config["instance_group"] = [
        chance.choice(
            [
                {"kind": "KIND_GPU"},
                {"kind": "KIND_CPU", "gpus": [0]},
                {"kind": "KIND_AUTO", "gpus": [0]},
                {"gpus": [1]},
                {"kind": "KIND_MODEL", "gpus": [0]},
                {"kind": "KIND_CPU", "profile": ["0"]},
                {"kind": "KIND_CPU", "count": -1},
                {"kind": "KIND_CPU", "rate_limiter": {"resources": [{"name": "R", "count": 3}]}},
                {"kind": "KIND_CPU", "passive": True},
            ]
        )
    ]


def _cache(config: Config, chance: random.Random) -> None:
    config["response_cache"] = {"enable": True}
    if chance.random() < 0.5:
        config["model_transaction_policy"] = {"decoupled": True}


def _policy(config: Config, chance: random.Random) -> None:
    config["version_policy"] = chance.choice(
        [
            {},
            {"latest": {}},
            {"all": {}},
            {"specific": {}},
            {"specific": {"versions": [3]}},
            {"specific": {"versions": [1, 9]}},
        ]
    )


def _warmup(config: Config, chance: random.Random) -> None:
    inputs = {}
    for declared in config.get("input", ()):
        sample: Config = {
            "data_type": declared.get("data_type", "TYPE_FP32"),
            "dims": [abs(size) for size in declared.get("dims", [])],
        }
        sample[chance.choice(["zero_data", "random_data", "zero_data", "none"])] = True
        sample.pop("none", None)
        if chance.random() < 0.2:
            sample["dims"] = chance.choice([[-1], [1, 1], []])
        if chance.random() < 0.1:
            sample["data_type"] = "TYPE_INT64"
        if chance.random() < 0.9:
            inputs[declared.get("name", "")] = sample
    config["model_warmup"] = [{"name": "w", "batch_size": chance.choice([0, 1, 1, 1, 2, 9]), "inputs": inputs}]


def _parameters(config: Config, chance: random.Random) -> None:
    config.setdefault("parameters", {})[
        chance.choice(["FORCE_CPU_ONLY_INPUT_TENSORS", "EXECUTION_ENV_PATH", "other"])
    ] = {"string_value": chance.choice(["yes", "no", "No", "", "/nowhere/env.tar.gz", "env.tar.gz"])}


def _batch_io(config: Config, chance: random.Random) -> None:
    source = chance.choice([["I0"], ["I0", "I0"], ["nope"], []])
    if chance.random() < 0.6:
        kind = chance.choice(["BATCH_ELEMENT_COUNT", "BATCH_ITEM_SHAPE", "BATCH_ACCUMULATED_ELEMENT_COUNT"])
        data_type = chance.choice(["TYPE_INT32", "TYPE_FP32", "TYPE_INT64"])
        config["batch_input"] = [{"kind": kind, "target_name": ["N"], "data_type": data_type, "source_input": source}]
    else:
        target = chance.choice([["O0"], ["O0", "O0"], ["nope"]])
        config["batch_output"] = [{"target_name": target, "source_input": source}]


def _backend(config: Config, chance: random.Random) -> None:
    config.pop("backend", None)
    config.update(
        chance.choice(
            [
                {},
                {"backend": "nope"},
                {"backend": "vllm"},
                {"platform": "python"},
                {"platform": "junk", "backend": "python"},
                {"platform": "tensorrt_plan", "backend": "onnxruntime"},
                {"platform": "tensorrt_plan"},
                {"platform": "ensemble"},
                {"platform": "ensemble", "backend": "python"},
                {"backend": "ensemble"},
            ]
        )
    )


def _agents(config: Config, chance: random.Random) -> None:
    config["model_repository_agents"] = {"agents": [{"name": "checksum"}]} if chance.random() < 0.5 else {}


_MODEL: tuple[Callable[[Config, random.Random], None], ...] = (
    _other_dims, _other_type, _no_field, _reshape, _tensor_field, _batch_size, _doubled_tensor, _name, _scheduler,
    _scheduler, _sequences, _initial_state, _instances, _cache, _policy, _warmup, _parameters, _batch_io, _backend,
    _agents,
)  # fmt: skip


def _steps(config: Config) -> list[Config]:
    steps = config.get("ensemble_scheduling", {}).get("step", [])
    return steps if isinstance(steps, list) and steps else [{}]


def _rewired(config: Config, chance: random.Random) -> None:
    """A map's value becomes another tensor of the ensemble."""
    step = chance.choice(_steps(config))
    field = chance.choice(["input_map", "output_map"])
    names = [
        name for one in _steps(config) for key in ("input_map", "output_map") for name in one.get(key, {}).values()
    ]
    names += [declared.get("name", "") for side in ("input", "output") for declared in config.get(side, ())]
    if step.get(field) and names:
        key = chance.choice(sorted(step[field]))
        step[field][key] = chance.choice([*names, "typo", ""])


def _rekeyed(config: Config, chance: random.Random) -> None:
    step = chance.choice(_steps(config))
    field = chance.choice(["input_map", "output_map"])
    if step.get(field):
        key = chance.choice(sorted(step[field]))
        value = step[field].pop(key) if chance.random() < 0.5 else step[field][key]
        step[field][chance.choice(["I0", "I1", "I2", "O0", "O1", "O2", "nope", key.lower()])] = value


def _unmapped(config: Config, chance: random.Random) -> None:
    step = chance.choice(_steps(config))
    field = chance.choice(["input_map", "output_map"])
    if step.get(field):
        step[field].pop(chance.choice(sorted(step[field])))


def _other_model(config: Config, chance: random.Random) -> None:
    names = sorted({step.get("model_name", "") for step in _steps(config)})
    chance.choice(_steps(config))["model_name"] = chance.choice([*names, "p00", "p05", "nope", ""])


def _version(config: Config, chance: random.Random) -> None:
    step = chance.choice(_steps(config))
    version = chance.choice([None, 0, 1, 1, 2, 3, 7, -2])
    step.pop("model_version", None)
    if version is not None:
        step["model_version"] = version


def _no_step(config: Config, chance: random.Random) -> None:
    steps = config.get("ensemble_scheduling", {}).get("step")
    if steps:
        steps.pop(chance.randrange(len(steps)))


def _doubled_step(config: Config, chance: random.Random) -> None:
    steps = config.get("ensemble_scheduling", {}).get("step")
    if steps:
        steps.append(copy.deepcopy(chance.choice(steps)))


def _interface(config: Config, chance: random.Random) -> None:
    """An input or output more, or less, or under another name."""
    side = chance.choice(["input", "output"])
    declared = config.setdefault(side, [])
    action = chance.randrange(4)
    names = sorted(
        {name for step in _steps(config) for key in ("input_map", "output_map") for name in step.get(key, {}).values()}
    )
    if action == 0 and declared:
        declared.pop(chance.randrange(len(declared)))
    elif action == 1:
        declared.append({"name": chance.choice([*names, "more"]), "data_type": "TYPE_FP32", "dims": [3]})
    elif action == 2 and declared:
        chance.choice(declared)["name"] = chance.choice([*names, "renamed"])
    elif declared:
        chance.choice(declared)["optional"] = True


def _not_on_ensembles(config: Config, chance: random.Random) -> None:
    field, value = chance.choice(
        [
            ("instance_group", [{"kind": "KIND_CPU"}]),
            ("optimization", {}),
            ("model_warmup", [{"name": "w"}]),
            ("dynamic_batching", {}),
            ("sequence_batching", {}),
            ("response_cache", {"enable": True}),
            ("model_transaction_policy", {"decoupled": True}),
            ("parameters", {"a": {"string_value": "b"}}),
            ("batch_input", [{"kind": "BATCH_ELEMENT_COUNT"}]),
            ("backend", "python"),
            ("platform", "python"),
            ("platform", ""),
        ]
    )
    config[field] = value


_ENSEMBLE: tuple[Callable[[Config, random.Random], None], ...] = (
    _other_dims, _other_type, _no_field, _reshape, _batch_size, _batch_size, _doubled_tensor, _name, _policy, _cache,
    _rewired, _rewired, _rewired, _rekeyed, _rekeyed, _unmapped, _unmapped, _other_model, _version, _no_step,
    _doubled_step, _interface, _interface, _interface, _not_on_ensembles,
)  # fmt: skip
