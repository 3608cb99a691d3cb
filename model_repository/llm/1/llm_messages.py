"""From chat messages or a prompt to token ids.

In: MESSAGES (JSON) or PROMPT (text), the model's tokenizer, how many tokens fit. Out: token ids that fit.
"""

import json
from collections.abc import Mapping
from typing import Any

MESSAGES_FORM = 'a JSON list like [{"role": "user", "content": "..."}] is needed'


class PromptError(ValueError):
    """What is wrong with MESSAGES or PROMPT, in four parts: input, found, expected, what to do."""


def token_ids(
    tokenizer: Any,
    messages: str | None,
    prompt: str | None,
    *,
    chat_template: str | None,
    template_arguments: Mapping[str, Any],
    max_model_len: int,
) -> list[int]:
    """Token ids of whichever of the two is given; `template_arguments` go to the chat template.

    Raises:
        PromptError: not exactly one is given, it is malformed, or it is too long for the model.
    """
    if messages is not None and prompt is None:
        ids = token_ids_of_messages(tokenizer, read_messages(messages), chat_template, template_arguments)
        return check_length("MESSAGES", ids, max_model_len)
    if prompt is not None and messages is None:
        return check_length("PROMPT", token_ids_of_prompt(tokenizer, prompt), max_model_len)
    found = "neither is given" if messages is None else "both are given"
    raise PromptError(f"MESSAGES, PROMPT: {found}; exactly one is needed; send chat messages or a raw prompt")


def read_messages(text: str) -> list[dict[str, Any]]:
    """Chat messages: each has a role and text content (or a list of text parts); other keys are the template's."""
    try:
        messages = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise PromptError(f"MESSAGES: no JSON ({error}); {MESSAGES_FORM}; correct it") from error
    if not isinstance(messages, list) or not messages:
        raise PromptError(f"MESSAGES: {_kind(messages)}; {MESSAGES_FORM}; correct it")
    return [_message(message, at) for at, message in enumerate(messages)]


def _kind(value: Any) -> str:
    return "an empty list" if value == [] else f"a JSON {type(value).__name__}"


def _message(message: Any, at: int) -> dict[str, Any]:
    if not isinstance(message, dict) or not isinstance(message.get("role"), str) or not message["role"]:
        raise PromptError(f'MESSAGES: message {at} has no "role"; {MESSAGES_FORM}; add it')
    content = message.get("content")
    if isinstance(content, list) and all(_is_text_part(part) for part in content):
        content = "".join(part["text"] for part in content)
    if content is None and message.get("tool_calls"):
        content = ""
    if not isinstance(content, str):
        raise PromptError(f'MESSAGES: message {at} has no text "content"; {MESSAGES_FORM}; send text alone')
    if not is_unicode(content):
        raise PromptError(f"MESSAGES: message {at} has half of a surrogate pair; {MESSAGES_FORM}; correct it")
    return {**message, "content": content}


def is_unicode(text: str) -> bool:
    """Whether the text can be written down: JSON's escapes can spell half of a character."""
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True


def _is_text_part(part: Any) -> bool:
    return isinstance(part, dict) and part.get("type") == "text" and isinstance(part.get("text"), str)


def token_ids_of_messages(
    tokenizer: Any,
    messages: list[dict[str, Any]],
    chat_template: str | None = None,
    template_arguments: Mapping[str, Any] | None = None,
) -> list[int]:
    """The messages in the form that the model was trained on, as token ids."""
    if chat_template is None and not getattr(tokenizer, "chat_template", True):
        raise PromptError(
            "MESSAGES: this model has no chat template; one is needed for messages; send PROMPT, or put a "
            "chat_template.jinja beside model.json"
        )
    options = {**(template_arguments or {}), **({} if chat_template is None else {"chat_template": chat_template})}
    try:
        ids = tokenizer.apply_chat_template(
            messages, tokenize=True, add_generation_prompt=True, return_dict=False, **options
        )
    except Exception as error:  # templates raise what they like: jinja2's errors, IndexError, TypeError
        reason = " ".join(str(error).split()) or type(error).__name__
        raise PromptError(
            f"MESSAGES: the model's chat template refuses them ({reason}); roles in its order are needed; change them"
        ) from error
    return with_bos(tokenizer, list(ids))


def token_ids_of_prompt(tokenizer: Any, prompt: str) -> list[int]:
    """The prompt as it is, with the token in front that the tokenizer puts there."""
    ids = with_bos(tokenizer, list(tokenizer.encode(prompt)))
    if not ids or prompt == "":
        raise PromptError("PROMPT: empty; some text is needed; send a prompt")
    return ids


def with_bos(tokenizer: Any, ids: list[int]) -> list[int]:
    """`ids` with exactly one begin-of-text token in front, for tokenizers that want one.

    Templates of chats may forget it, and a prompt copied from a log may bring its own.
    """
    bos = getattr(tokenizer, "bos_token_id", None)
    if bos is None:
        return ids
    rest = list(ids)
    while rest[:1] == [bos]:
        del rest[0]
    wanted = len(rest) != len(ids) or bos in tokenizer.encode("")
    return [bos, *rest] if wanted else rest


def check_length(name: str, ids: list[int], max_model_len: int) -> list[int]:
    """`ids`, when at least one token of the context is left for the answer."""
    allowed = max_model_len - 1
    if len(ids) > allowed:
        raise PromptError(
            f"{name}: {len(ids)} tokens; at most {allowed} are allowed (max_model_len {max_model_len}, one is for the "
            "answer); shorten the text, or raise max_model_len in model.json if the model supports it"
        )
    return ids
