"""Which `model` a request may name at which endpoint, and what must be loaded for it."""

from collections.abc import Mapping

from clients.gateway.problems import Problem

# Name in the API -> the models of the server that must be loaded.
WRITING = {
    "assistant": ("assistant", "assistant_audio", "assistant_image", "llm", "prompt", "transcribe", "detect"),
    "llm": ("llm",),
}
HEARING = {"transcribe": ("transcribe",)}
SEEING = {"detect": ("detect",)}
ALL = {**WRITING, **HEARING, **SEEING}
SERVED = tuple(dict.fromkeys(name for needs in ALL.values() for name in needs))


def check_model(name: str, taken: Mapping[str, tuple[str, ...]], aliases: Mapping[str, str]) -> None:
    """Raises Problem for a model that the endpoint doesn't have."""
    if aliases.get(name, name) not in taken:
        words = f"model: {name[:100]!a} is not served here; {' or '.join(taken)} is needed. GET /v1/models lists all."
        raise Problem(404, words, code="model_not_found", param="model")


def ready_names(is_ready: Mapping[str, bool], aliases: Mapping[str, str]) -> list[str]:
    """The names whose models are loaded, the aliases after them."""
    names = [name for name, needs in ALL.items() if all(is_ready[one] for one in needs)]
    return names + [alias for alias, name in aliases.items() if name in names]
