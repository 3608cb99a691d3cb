"""The object that `auto_complete_config` of a model.py gets and returns."""

from __future__ import annotations

import json
from typing import Any


class ModelConfig:
    """A configuration that a model may complete, and not contradict."""

    def __init__(self, model_config: str) -> None:
        self._model_config: dict[str, Any] = json.loads(model_config)

    def as_dict(self) -> dict[str, Any]:
        return self._model_config

    def set_max_batch_size(self, max_batch_size: int) -> None:
        given = self._model_config["max_batch_size"]
        if given > max_batch_size:
            self._refuse(f"max_batch_size {max_batch_size} is below the configuration's {given}")
        self._model_config["max_batch_size"] = max_batch_size

    def set_dynamic_batching(self) -> None:
        for other in ("sequence_batching", "ensemble_scheduling"):
            if other in self._model_config:
                self._refuse(f"the configuration has '{other}', 'dynamic_batching' cannot be set")
        self._model_config.setdefault("dynamic_batching", {})

    def set_model_transaction_policy(self, transaction_policy_dict: dict[str, bool]) -> None:
        if unknown := sorted(transaction_policy_dict.keys() - {"decoupled"}):
            self._refuse(f"model transaction policy has only 'decoupled', not {', '.join(unknown)}")
        policy = self._model_config.setdefault("model_transaction_policy", {})
        for name, value in transaction_policy_dict.items():
            if policy.get(name, value) != value:
                self._refuse(f"'{name}' is {policy[name]} in the configuration and cannot be changed")
            policy[name] = value

    def add_input(self, input: dict[str, Any]) -> None:
        self._add("input", input, ("name", "data_type", "dims"), ("optional",))

    def add_output(self, output: dict[str, Any]) -> None:
        self._add("output", output, ("name", "data_type", "dims"), ())

    def _add(self, kind: str, entry: dict[str, Any], needed: tuple[str, ...], allowed: tuple[str, ...]) -> None:
        label = f"{kind} '{entry.get('name', '?')}'"
        if unknown := sorted(entry.keys() - set(needed) - set(allowed)):
            self._refuse(f"{label} may not have {', '.join(unknown)}")
        if missing := [name for name in needed if name not in entry]:
            self._refuse(f"{label} lacks {', '.join(missing)}")
        for known in self._model_config[kind]:
            if known["name"] == entry["name"]:
                self._merge(label, known, entry)
                return
        self._model_config[kind].append(entry)

    def _merge(self, label: str, known: dict[str, Any], entry: dict[str, Any]) -> None:
        for name, value in entry.items():
            given = known.get(name)
            is_unset = given in (None, [], "TYPE_INVALID")
            if not is_unset and given != value:
                self._refuse(f"{label}: {name} is {given} in the configuration, {value} in the model")
            known[name] = value

    def _refuse(self, reason: str) -> None:
        raise ValueError(f"auto_complete_config of model '{self._model_config.get('name', '')}': {reason}")
