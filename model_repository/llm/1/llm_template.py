"""What a request tells the model's chat template besides messages: tools, above all.

In: TEMPLATE_ARGUMENTS, a JSON object. Out: keyword arguments of the template, each one that it really uses.
"""

import inspect
import json
import re
from typing import Any

from llm_messages import PromptError

EXPECTED = 'a JSON object of what the chat template takes is needed, such as {"tools": [...]}'
OWN = {"tools", "documents"}  # the tokenizer's own parameters that say something to the model


def template_arguments_from(text: str | None, tokenizer: Any, chat_template: str | None) -> dict[str, Any]:
    """The arguments; a template that ignored one would answer another question than was asked.

    Args:
        chat_template: what is used in the place of the tokenizer's own.

    Raises:
        PromptError: no JSON object, or a name that the template does not use or that is decided here.
    """
    if text is None:
        return {}
    try:
        given = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise PromptError(f"TEMPLATE_ARGUMENTS: no JSON ({error}); {EXPECTED}; correct it") from error
    if not isinstance(given, dict):
        raise PromptError(f"TEMPLATE_ARGUMENTS: a JSON {type(given).__name__}; {EXPECTED}; correct it")
    decided = sorted(set(given) & (parameters_of(tokenizer) - OWN | {"messages"}))
    if decided:
        raise PromptError(f"TEMPLATE_ARGUMENTS: {decided[0]} is decided by the model; {EXPECTED}; leave it out")
    template = template_of(tokenizer, chat_template)
    unused = [name for name in given if not re.search(rf"\b{re.escape(name)}\b", template)]
    if unused:
        raise PromptError(
            f"TEMPLATE_ARGUMENTS: this model's chat template does not use {', '.join(unused)}; names that it uses are "
            "needed; leave them out, or serve a model that was trained with them"
        )
    check_tools(given.get("tools", []))
    return given


def check_tools(tools: Any) -> None:
    if not isinstance(tools, list) or not all(isinstance(one, dict) for one in tools):
        raise PromptError(
            "TEMPLATE_ARGUMENTS: tools is no list of objects; a JSON list of objects is needed; correct it"
        )


def template_of(tokenizer: Any, chat_template: str | None) -> str:
    """The text of the template that will be used, "" if there is none."""
    if chat_template is not None:
        return chat_template
    found = getattr(tokenizer, "chat_template", None)
    return "\n".join(found.values()) if isinstance(found, dict) else found or ""


def parameters_of(tokenizer: Any) -> set[str]:
    """The names that the tokenizer's `apply_chat_template` takes itself."""
    return set(inspect.signature(tokenizer.apply_chat_template).parameters) - {"kwargs"}
