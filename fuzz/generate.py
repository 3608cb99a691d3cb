"""Random repositories: a pool of models that load, and many small repositories over them, good and broken.

In: a seed. Out: a `World`: what one server start carries. Every repository is two to six models and an ensemble or
two; its own models and its ensembles carry its number in their names, and steps may also run models of the pool.
"""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from fuzz.damage import damaged_config, damaged_folder
from fuzz.textform import config_text, damaged

Config = dict[str, Any]
TYPES = ("TYPE_FP32", "TYPE_INT32", "TYPE_STRING", "TYPE_BOOL", "TYPE_FP16")
DIMS = ([1], [3], [-1], [2, 3], [-1, 3], [1, 3], [-1, -1], [1, 2, 3], [-1, 2, 3])


@dataclass(frozen=True, slots=True, kw_only=True)
class Folder:
    """One model's folder: the text of its config (None: there is none), version folders, whether code lies in them."""

    name: str
    text: str | None
    versions: tuple[str, ...]
    code: bool
    extra: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class World:
    """What one start carries: the pool, and for each repository its own folders."""

    pool: tuple[Folder, ...]
    repositories: tuple[tuple[Folder, ...], ...]


def make_world(seed: int, *, repositories: int, pool: int, models: float) -> World:
    """A world by its seed.

    Args:
        pool: models that every repository may use.
        models: how many models of its own a repository has on average; each that loads costs a process.
    """
    chance = random.Random(seed)
    configs = {f"p{index:02}": random_model(chance) for index in range(pool)}
    shared = tuple(_python_folder(name, config, chance) for name, config in configs.items())
    made = [random_repository(f"r{index:04}", configs, chance, models) for index in range(repositories)]
    return World(pool=shared, repositories=tuple(made))


def random_repository(
    name: str, pool: Mapping[str, Config], chance: random.Random, models: float
) -> tuple[Folder, ...]:
    """One repository: models of its own, mostly broken ones (they cost nothing), and one or two ensembles."""
    known = dict(chance.sample(sorted(pool.items()), k=min(len(pool), 6)))
    folders: list[Folder] = []
    own = int(models) + (chance.random() < models % 1)
    for index in range(own):
        model = f"{name}_m{index}"
        config = random_model(chance)
        known[model] = config
        folders.append(_python_folder(model, _maybe_damaged(config, chance, 0.85), chance, damage=0.1))
    ensembles = 2 if chance.random() < 0.2 else 1
    for index in range(ensembles):
        ensemble = f"{name}_e{index}"
        config = random_ensemble(known, chance)
        broken = _maybe_damaged(config, chance, 0.6)
        text = config_text(broken, chance)
        if chance.random() < 0.08:
            text = damaged(text, chance)
        versions, extra = damaged_folder(("1",), chance, 0.05)
        folders.append(Folder(name=ensemble, text=text, versions=versions, code=False, extra=extra))
        known[ensemble] = config
    return tuple(folders)


def _maybe_damaged(config: Config, chance: random.Random, share: float) -> Config:
    if chance.random() >= share:
        return config
    for _ in range(chance.choice([1, 1, 1, 2, 3])):
        config = damaged_config(config, chance)
    return config


def _python_folder(name: str, config: Config, chance: random.Random, damage: float = 0.0) -> Folder:
    text = config_text(config, chance)
    if chance.random() < damage:
        text = damaged(text, chance)
    versions: tuple[str, ...] = ("1",) if chance.random() < 0.85 else ("1", "3")
    versions, extra = damaged_folder(versions, chance, damage / 2)
    return Folder(name=name, text=text, versions=versions, code=True, extra=extra)


def random_model(chance: random.Random) -> Config:
    """The config of an identity model that loads."""
    batch = chance.choice([0, 0, 0, 1, 4, 8])
    config: Config = {"backend": "python", "max_batch_size": batch}
    config["input"] = [random_tensor(f"I{index}", chance, batch) for index in range(chance.choice([1, 1, 2, 3]))]
    config["output"] = [random_tensor(f"O{index}", chance, batch) for index in range(chance.choice([1, 1, 2, 2, 3]))]
    for declared in config["input"]:
        if chance.random() < 0.2:
            declared["optional"] = True
    config["instance_group"] = [{"count": 1, "kind": chance.choice(["KIND_CPU", "KIND_AUTO", "KIND_MODEL"])}]
    if chance.random() < 0.25:
        config["model_transaction_policy"] = {"decoupled": True}
    kind = chance.randrange(5)
    if kind == 0:
        config["dynamic_batching"] = random_batching(batch, chance)
    elif kind == 1 and chance.random() < 0.5:
        config["sequence_batching"] = random_sequences(batch, chance)
    if chance.random() < 0.1 and not config.get("model_transaction_policy") and kind != 1:
        config["response_cache"] = {"enable": True}
    if chance.random() < 0.15:
        config["version_policy"] = chance.choice(
            [{"latest": {"num_versions": 2}}, {"all": {}}, {"specific": {"versions": [1]}}]
        )
    config["parameters"] = {"SIZE": {"string_value": str(chance.choice([1, 2, 3]))}}
    return config


def random_tensor(name: str, chance: random.Random, batch: int) -> Config:
    """An input or output, now and then with a reshape that fits."""
    dims = list(chance.choice(DIMS))
    declared: Config = {
        "name": name,
        "data_type": chance.choice(TYPES[:3] if chance.random() < 0.8 else TYPES),
        "dims": dims,
    }
    if chance.random() < 0.1:
        if dims == [1] and batch > 0:
            declared["reshape"] = {"shape": []}
        elif -1 not in dims:
            declared["reshape"] = {"shape": [1, *dims]}
        else:
            declared["reshape"] = {"shape": [*dims, 1]}
    return declared


def random_batching(batch: int, chance: random.Random) -> Config:
    """A dynamic batcher that loads."""
    batching: Config = {}
    if batch and chance.random() < 0.5:
        batching["preferred_batch_size"] = [chance.randint(1, batch)]
    if chance.random() < 0.5:
        batching["max_queue_delay_microseconds"] = chance.choice([0, 100, 2**40])
    if chance.random() < 0.3:
        levels = chance.choice([1, 2, 5])
        batching |= {"priority_levels": levels, "default_priority_level": chance.randint(1, levels)}
        if chance.random() < 0.5:
            batching["priority_queue_policy"] = {chance.randint(1, levels): random_policy(chance)}
    if chance.random() < 0.3:
        batching["default_queue_policy"] = random_policy(chance)
    elif batching.get("priority_levels", 1) == 1 and "priority_queue_policy" not in batching and chance.random() < 0.3:
        batching["preserve_ordering"] = True
    return batching


def random_policy(chance: random.Random) -> Config:
    """A queue policy."""
    return {
        "timeout_action": chance.choice(["REJECT", "DELAY"]),
        "default_timeout_microseconds": chance.choice([0, 1000, 10**9]),
        "allow_timeout_override": chance.random() < 0.5,
        "max_queue_size": chance.choice([0, 10]),
    }


def random_sequences(batch: int, chance: random.Random) -> Config:
    """A sequence batcher that loads."""
    pair: Config = chance.choice(
        [{"int32_false_true": [0, 1]}, {"fp32_false_true": [0, 1]}, {"bool_false_true": [False, True]}]
    )
    controls = [
        {"name": "START", "control": [{"kind": "CONTROL_SEQUENCE_START", **pair}]},
        {"name": "CORRID", "control": [{"kind": "CONTROL_SEQUENCE_CORRID", "data_type": "TYPE_UINT64"}]},
    ]
    batching: Config = {"control_input": controls[: chance.randrange(3)]}
    if chance.random() < 0.4:
        batching["oldest"] = {"max_candidate_sequences": 4, **({"preferred_batch_size": [batch]} if batch else {})}
    elif chance.random() < 0.5:
        batching["direct"] = {"minimum_slot_utilization": chance.choice([0.0, 0.5, 1.0])}
    if chance.random() < 0.3:
        state: Config = {"input_name": "SI", "output_name": "SO", "data_type": "TYPE_FP32", "dims": [2]}
        if chance.random() < 0.5:
            state["initial_state"] = [{"name": "zero", "data_type": "TYPE_FP32", "dims": [2], "zero_data": True}]
        batching["state"] = [state]
    return batching


def random_ensemble(models: Mapping[str, Config], chance: random.Random) -> Config:
    """An ensemble that is meant to load: every input from a tensor that fits, or from the caller."""
    single = [
        name for name, config in models.items() if not config.get("model_transaction_policy", {}).get("decoupled")
    ]
    known = single if single and chance.random() < 0.6 else list(models)
    names = chance.choices(sorted(known), k=chance.choice([1, 2, 2, 3, 3, 4, 6]))
    sizes = [models[name].get("max_batch_size", 0) for name in names]
    positive = [size for size in sizes if size > 0]
    batch = chance.choice([0, 0, min(positive, default=0), chance.randint(0, min(positive, default=2))])
    tensors: dict[str, tuple[str, list[int], bool]] = {}
    inputs: list[Config] = []
    used: set[str] = set()
    steps: list[Config] = []
    for index, name in enumerate(names):
        batching = sizes[index] > 0
        step: Config = {"model_name": name, "model_version": -1, "input_map": {}, "output_map": {}}
        for declared in models[name].get("input", ()):
            if declared.get("optional") and chance.random() < 0.5:
                continue
            fitting = [key for key, tensor in tensors.items() if _fits(tensor, declared, batching)]
            if fitting and chance.random() < 0.75:
                tensor = chance.choice(fitting)
            else:
                tensor = f"x{len(inputs)}"
                dims = _dims_at_ensemble(declared["dims"], batching, batch, chance)
                inputs.append({"name": tensor, "data_type": declared["data_type"], "dims": dims})
                if declared.get("optional") and chance.random() < 0.5:
                    inputs[-1]["optional"] = True
                tensors[tensor] = (declared["data_type"], dims, batch > 0)
            step["input_map"][declared["name"]] = tensor
            used.add(tensor)
        for declared in models[name].get("output", ()):
            if chance.random() < 0.85 or not step["output_map"]:
                tensor = f"t{index}_{declared['name']}"
                step["output_map"][declared["name"]] = tensor
        for key, tensor in step["output_map"].items():
            declared = next(one for one in models[name]["output"] if one["name"] == key)
            tensors[tensor] = (declared["data_type"], declared["dims"], batching)
        if not step["input_map"]:
            continue
        steps.append(step)
    made = {tensor for step in steps for tensor in step["output_map"].values()}
    outputs = []
    for tensor in sorted(made):
        if tensor not in used or chance.random() < 0.1:
            data_type, dims, batching = tensors[tensor]
            shown = _dims_at_ensemble(dims, batching, batch, chance)
            outputs.append({"name": tensor, "data_type": data_type, "dims": shown})
    if chance.random() < 0.2:
        chance.shuffle(steps)
    return {
        "platform": "ensemble",
        "max_batch_size": batch,
        "input": inputs,
        "output": outputs,
        "ensemble_scheduling": {"step": steps},
    }


def _fits(tensor: tuple[str, list[int], bool], declared: Config, batching: bool) -> bool:
    """Whether a tensor seems to fit an input; not exactly the server's rule, so some wrong ones get through."""
    data_type, dims, batched = tensor
    want = declared["dims"]
    full, wanted = ([-1] if batched else []) + dims, ([-1] if batching else []) + want
    return data_type == declared["data_type"] and any(
        len(left) == len(right) and all(a == b or -1 in (a, b) for a, b in zip(left, right, strict=True))
        for left, right in ((dims, want), (full, wanted))
    )


def _dims_at_ensemble(dims: list[int], batching: bool, batch: int, chance: random.Random) -> list[int]:
    """Dims that an ensemble may declare for a model's tensor: with or without the batch, a size now and then open."""
    shown = list(dims)
    if batching and batch == 0 and chance.random() < 0.5:
        shown = [-1, *shown]
    elif not batching and batch > 0 and len(shown) > 1 and shown[0] == -1 and chance.random() < 0.5:
        shown = shown[1:]
    return [-1 if chance.random() < 0.1 else size for size in shown]
