"""From SAMPLING_PARAMETERS (JSON) to vLLM's SamplingParams.

In: the JSON text of one request, and what the model itself suggests (its generation_config.json).
Out: SamplingParams of the installed vLLM. Its own list of parameters is the list that counts: whatever it knows by name
is accepted, whatever it does not know is refused by name, never dropped.
"""

import dataclasses
import difflib
import functools
import json
import typing
from collections.abc import Mapping
from typing import Any

EXPECTED = "a JSON object of vLLM's SamplingParams is needed"
DO = "correct it or leave it out"

# What this model decides itself, or has no output for: parameter -> why.
REFUSED = {
    "output_kind": "the answer is always streamed as deltas",
    "skip_clone": "it is internal to vLLM",
    "output_text_buffer_length": "it is internal to vLLM",
    "prompt_logprobs": "there is no output for log probabilities of the prompt",
    "prompt_logprob_token_ids": "there is no output for log probabilities of the prompt",
    "prompt_logprob_start": "there is no output for log probabilities of the prompt",
    "logprob_token_ids": "LOGPROBS tells the likeliest tokens, as many as logprobs says",
    "flat_logprobs": "it is internal to vLLM",
}

# What other engines and APIs call the same thing.
OTHER_NAMES = {
    "max_new_tokens": "max_tokens",
    "max_completion_tokens": "max_tokens",
    "max_length": "max_tokens",
    "min_length": "min_tokens",
    "random_seed": "seed",
    "stop_words": "stop",
    "stop_sequences": "stop",
    "bad_words_list": "bad_words",
    "end_id": "stop_token_ids",
    "num_return_sequences": "n",
    "best_of": "n",
    "do_sample": "temperature",
    "runtime_top_k": "top_k",
    "runtime_top_p": "top_p",
    "guided_json": "structured_outputs",
    "guided_regex": "structured_outputs",
    "guided_choice": "structured_outputs",
    "guided_grammar": "structured_outputs",
    "response_format": "structured_outputs",
}


class SamplingError(ValueError):
    """What is wrong with SAMPLING_PARAMETERS, in four parts: input, found, expected, what to do."""

    def __init__(self, found: str, expected: str = EXPECTED, do: str = DO) -> None:
        super().__init__(f"SAMPLING_PARAMETERS: {found}; {expected}; {do}")


def sampling_params_from(text: str | None, suggested: Mapping[str, Any], vocabulary_size: int) -> Any:
    """SamplingParams for one request: what it says, else what the model suggests, else vLLM's defaults.

    Without `max_tokens` the answer may fill the context (vLLM's own default of 16 tokens cuts most answers). null is
    the same as not given.

    Raises:
        SamplingError: a name is unknown, a type or a value is wrong.
    """
    from vllm.sampling_params import RequestOutputKind, SamplingParams

    types = parameter_types()
    given = check_names(read_object(text), tuple(types))
    typed = {name: check_type(name, value, types[name]) for name, value in given.items() if value is not None}
    values = {"max_tokens": None, **suggested, **typed}
    check_one_answer(values)
    check_token_ids(values, vocabulary_size)
    try:
        return SamplingParams(**values, output_kind=RequestOutputKind.DELTA)
    except Exception as error:  # vLLM's own errors have changed their classes over time; all are about these values
        raise SamplingError(_first_line(error)) from error


def read_object(text: str | None) -> dict[str, Any]:
    """The JSON object of the text; empty text is an empty object."""
    if text is None or not text.strip():
        return {}
    try:
        value = json.loads(text, object_pairs_hook=_object_without_repeats, parse_constant=_refuse_constant)
    except SamplingError:
        raise
    except (ValueError, RecursionError) as error:
        raise SamplingError(f"no JSON ({error})", do='send for example {"max_tokens": 64}') from error
    if not isinstance(value, dict):
        raise SamplingError(f"a JSON {type(value).__name__}", do='send for example {"max_tokens": 64}')
    return value


def _object_without_repeats(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    names = [name for name, _ in pairs]
    repeated = sorted({name for name in names if names.count(name) > 1})
    if repeated:
        raise SamplingError(f"{', '.join(repeated)} more than once", "each name once is needed", "leave one out")
    return dict(pairs)


def _refuse_constant(name: str) -> Any:
    raise SamplingError(f"{name}", "finite numbers are needed")


def check_names(given: dict[str, Any], known: tuple[str, ...]) -> dict[str, Any]:
    """`given` as it is, when each name is one that vLLM knows and this model can serve."""
    unknown = [name for name in given if name not in known]
    if unknown:
        hints = "; ".join(_hint(name, known) for name in unknown)
        raise SamplingError(f"unknown {', '.join(unknown)}", f"names of vLLM's SamplingParams are needed ({hints})")
    for name in given:
        if name in REFUSED:
            raise SamplingError(f"{name} is given", f"{REFUSED[name]}", "leave it out")
    return given


def _hint(name: str, known: tuple[str, ...]) -> str:
    close = [OTHER_NAMES[name]] if name in OTHER_NAMES else difflib.get_close_matches(name.lower(), known, n=1)
    return f"did you mean {close[0]} instead of {name}?" if close else f"nothing is like {name}"


@functools.cache
def parameter_types() -> dict[str, Any]:
    """Name and type of each parameter that the installed vLLM lets a caller set."""
    import msgspec
    from vllm.sampling_params import SamplingParams

    return {
        field.name: field.type for field in msgspec.structs.fields(SamplingParams) if not field.name.startswith("_")
    }


def check_type(name: str, value: Any, wanted: Any) -> Any:
    """The value in the parameter's type (JSON has text keys where `logit_bias` wants numbers, and so on)."""
    import msgspec

    check_size(name, value)
    for part in (wanted, *typing.get_args(wanted)):
        if dataclasses.is_dataclass(part) and isinstance(value, dict):
            known = tuple(field.name for field in dataclasses.fields(part) if not field.name.startswith("_"))
            check_names_inside(name, value, known)
    try:
        return msgspec.convert(value, wanted, str_keys=True)
    except Exception as error:  # msgspec's, and whatever the nested parameters' own checks raise
        raise SamplingError(f"{name} is {_shown(value)}", _first_line(error).removesuffix(".")) from error


def check_size(name: str, value: Any) -> None:
    """Whole numbers must fit in 64 bits: what carries them to the engine's process knows no others."""
    for part in value if isinstance(value, list) else [value]:
        if isinstance(part, int) and not -(2**63) <= part < 2**63:
            raise SamplingError(f"{name} is {_shown(value)}", "a whole number of 64 bits is needed")


def check_names_inside(parameter: str, given: dict[str, Any], known: tuple[str, ...]) -> None:
    unknown = [name for name in given if name not in known]
    if unknown:
        raise SamplingError(
            f"unknown {', '.join(unknown)} in {parameter}",
            f"one of {', '.join(known)} is needed ({'; '.join(_hint(name, known) for name in unknown)})",
        )


def check_token_ids(values: Mapping[str, Any], vocabulary_size: int) -> None:
    """Token ids must be the model's: the engine looks them up in its tables without asking."""
    for name in ("stop_token_ids", "allowed_token_ids", "trace_decode_token_ids", "logit_bias"):
        wrong = [token_id for token_id in values.get(name) or () if not 0 <= token_id < vocabulary_size]
        if wrong:
            raise SamplingError(
                f"{name} has {_shown(wrong)}", f"token ids of this model are needed (0 to {vocabulary_size - 1})"
            )


def check_one_answer(values: Mapping[str, Any]) -> None:
    if values.get("n", 1) != 1:
        raise SamplingError(
            f"n is {_shown(values['n'])}",
            "one answer per request is served (n is 1)",
            "send the request several times, each with its own seed; the engine batches them",
        )
    if values.get("detokenize") is False:
        raise SamplingError("detokenize is false", "TEXT would stay empty", "leave it out")


def _shown(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 60 else text[:57] + "..."


def _first_line(error: Exception) -> str:
    """The message alone: pydantic and vLLM put what they were given and links on further lines."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return lines[0] if lines else type(error).__name__
