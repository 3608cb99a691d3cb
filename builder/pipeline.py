"""A pipeline: steps over models, joined by ensemble tensors. What a person writes.

Data types and dims are never written here: inputs take them from the steps that use them, outputs from the step that
makes them. An optional input may be left out by the caller; `plan.py` derives one ensemble for every useful choice.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from builder.errors import DeclarationError
from builder.model import Model, freeze, written_out

Map = Mapping[str, str] | str | Iterable[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Input:
    """An input of a pipeline. Short form: `"IMAGE"`, `"IMAGE?"` where it may be left out."""

    name: str
    optional: bool = False


@dataclass(frozen=True, slots=True, init=False)
class Step:
    """One step of a pipeline.

    Attributes:
        model: the model it runs.
        input_map: by name of the model's input, the ensemble tensor it reads.
        output_map: by name of the model's output, the ensemble tensor it makes. Outputs that nobody needs are left out.
    """

    model: Model
    input_map: Mapping[str, str]
    output_map: Mapping[str, str]

    def __init__(self, *, model: Model, input_map: Map, output_map: Map) -> None:
        """Both maps also take words, `"IMAGE MODE=speed"`, or a list of them.

        A word alone is a tensor with one name on both sides, `key=value` is as in the dict.
        """
        set_ = object.__setattr__
        set_(self, "model", model)
        set_(self, "input_map", freeze(_map(model.name, "input_map", input_map)))
        set_(self, "output_map", freeze(_map(model.name, "output_map", output_map)))


@dataclass(frozen=True, slots=True, init=False)
class Pipeline:
    """A pipeline, served as an ensemble of its name, and as further ones without its optional inputs.

    Attributes:
        inputs: what the caller sends. An optional input whose steps can all do without it becomes an optional input
            of the ensemble; for any other one an ensemble without it is derived.
        outputs: the ensemble tensors that the caller gets.
        bare_suffix: ends the name of the ensemble that has none of the inputs that derive ensembles; the others end
            in the inputs they have (`assistant_audio`).
        config: further parts of the ensemble's ModelConfig by Triton's names.
    """

    name: str
    steps: tuple[Step, ...]
    inputs: tuple[Input, ...]
    outputs: tuple[str, ...]
    bare_suffix: str
    config: Mapping[str, Any]

    def __init__(
        self,
        *,
        name: str,
        steps: Iterable[Step],
        inputs: str | Iterable[str | Input],
        outputs: str | Iterable[str],
        bare_suffix: str = "bare",
        **config: Any,
    ) -> None:
        """Inputs and outputs take words too: `"AUDIO? QUESTION"`, a `?` after an input that may be left out."""
        set_ = object.__setattr__
        set_(self, "name", name)
        set_(self, "steps", tuple(steps))
        set_(self, "inputs", tuple(_input(one) for one in _words(inputs)))
        set_(self, "outputs", tuple(_words(outputs)))
        set_(self, "bare_suffix", bare_suffix)
        set_(self, "config", freeze(written_out(config)))

    def models(self) -> tuple[Model, ...]:
        """The models of its steps, each once, in order."""
        return tuple({id(step.model): step.model for step in self.steps}.values())


def yes_or_no(pipeline: str, name: str, said: str) -> bool:
    """Whether an argument of a pipeline's function, given as a word, says yes.

    Raises:
        DeclarationError: it says neither yes nor no.
    """
    if said not in ("yes", "no"):
        raise DeclarationError(
            where=f"{pipeline}, {name}",
            found=f'it is "{said}"',
            expected="yes or no is needed",
            fix=f"Say {name}=yes, or leave it out",
        )
    return said == "yes"


def _words(value: Any) -> list[Any]:
    return value.split() if isinstance(value, str) else list(value)


def _input(value: Input | str) -> Input:
    if isinstance(value, Input):
        return value
    return Input(name=value.removesuffix("?"), optional=value.endswith("?"))


def _map(model: str, name: str, value: Any) -> dict[str, str]:
    if isinstance(value, Mapping):
        return dict(value)
    result: dict[str, str] = {}
    for word in _words(value):
        key, _, tensor = word.partition("=")
        if key in result:
            raise DeclarationError(
                where=f"step of {model}, {name}",
                found=f"{key} is mapped twice",
                expected="each of the model's tensors can be mapped once",
                fix="Keep one of the two",
            )
        result[key] = tensor or key
    return result
