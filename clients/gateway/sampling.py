"""From OpenAI's names of sampling parameters to those of the served model's engine.

What both call the same goes as it is, and so does what OpenAI doesn't know: the model refuses by name what its engine
doesn't know. What would change the answer and can't be honoured is refused here; what can't change it is not sent.
"""

from typing import Any

from clients.gateway.problems import Problem, invalid, unsupported

# Says who asks, or how it is billed and kept: nothing about the answer.
ABOUT_THE_CALL = {"user", "metadata", "safety_identifier", "prompt_cache_key", "service_tier"}

# Parameter -> the values that ask for nothing, and why others are refused.
ABSENT: dict[str, tuple[tuple[Any, ...], str]] = {
    "functions": (([],), "tools says the same"),
    "function_call": (("none", "auto"), "tool_choice says the same"),
    "modalities": ((["text"],), "answers are text"),
    "audio": ((), "answers are text"),
    "store": ((False,), "nothing is stored"),
    "prediction": ((), "predicted answers are not used"),
    "reasoning_effort": ((), "the served model has no such setting"),
    "verbosity": ((), "the served model has no such setting"),
    "web_search_options": ((), "nothing is searched"),
    "suffix": (("",), "the served model only writes what follows"),
    "echo": ((False,), "the prompt is not repeated"),
    "best_of": ((1,), "as many answers are written as are given back"),
}
MOST_STOPS = 4


def sampling_options(extra: dict[str, Any], *, max_tokens: int | None, stop: str | list[str] | None) -> dict[str, Any]:
    """SAMPLING_PARAMETERS of one answer.

    Args:
        extra: every part of the body that the endpoint doesn't read itself.
        max_tokens: None lets the answer fill the model's context, as OpenAI's API says.

    Raises:
        Problem: one of them can't be honoured.
    """
    options = {name: value for name, value in extra.items() if value is not None and name not in ABOUT_THE_CALL}
    for name in [name for name in options if name in ABSENT]:
        values, why = ABSENT[name]
        if options.pop(name) not in values:
            raise unsupported(name, why)
    if "response_format" in options:
        options |= structured(options.pop("response_format"))
    if "n" in options:
        raise invalid("n", "more than once", "a whole number is needed")
    if max_tokens is not None:
        options["max_tokens"] = max_tokens
    if stop is not None:
        stops = [stop] if isinstance(stop, str) else stop
        options["stop"] = check_stops(stops)
    return options


def check_stops(stops: list[str]) -> list[str]:
    if len(stops) > MOST_STOPS or not all(stops):
        raise invalid("stop", f"{len(stops)} texts", f"up to {MOST_STOPS}, none of them empty, are taken")
    return stops


def structured(wanted: Any) -> dict[str, Any]:
    """The engine's words for OpenAI's response_format."""
    kind = wanted.get("type") if isinstance(wanted, dict) else None
    if kind == "text":
        return {}
    if kind == "json_object":
        return {"structured_outputs": {"json_object": True}}
    if kind == "json_schema":
        inner = wanted.get("json_schema")
        schema = inner.get("schema") if isinstance(inner, dict) else None
        if isinstance(schema, dict):
            return {"structured_outputs": {"json": schema}}
    expected = "text, json_object, or json_schema with its schema, is needed"
    raise invalid("response_format", f"the type {kind!r}", expected)


def seeds(options: dict[str, Any], count: int) -> list[dict[str, Any]]:
    """The options of each of `count` answers: with a seed, each its own, so that they differ but can be repeated."""
    seed = options.get("seed")
    if seed is None or count == 1:
        return [options] * count
    if not isinstance(seed, int) or isinstance(seed, bool):
        raise Problem(400, "seed: a whole number is needed.", code="invalid_value", param="seed")
    return [{**options, "seed": seed + place} for place in range(count)]
