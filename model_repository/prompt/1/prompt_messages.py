"""From what was heard, what was seen and what was asked to chat messages.

In: the transcript (text), the detections (the JSON of yolo_postprocess), the question (text); each may be absent.
Out: chat messages, as the LLM step takes them. The words come from a Jinja template: changing them needs no code.
"""

import json
import re
from collections import Counter
from pathlib import Path
from typing import Any

from jinja2 import StrictUndefined, Template, TemplateError
from jinja2.sandbox import SandboxedEnvironment

ROLES = ("system", "user", "assistant")
BLOCK_NAME = re.compile(rf"({'|'.join(ROLES)})(_\d+)?")

ASK_ABOUT_BOTH = "What do you hear and see?"
ASK_ABOUT_RECORDING = "What do you hear?"
ASK_ABOUT_PICTURE = "What do you see?"

Message = dict[str, str]
Counts = list[tuple[str, int]]


class PromptError(ValueError):
    """What is wrong with one input, in four parts: input, found, expected, what to do."""


def load_template(path: Path) -> Template:
    """The template of a file, compiled in a sandbox, its block names checked.

    Raises:
        PromptError: the file is no Jinja template, or a block is not named after a role.
    """
    environment = SandboxedEnvironment(undefined=StrictUndefined, autoescape=False, keep_trailing_newline=False)
    try:
        template = environment.from_string(path.read_text(encoding="utf-8"))
    except TemplateError as error:
        raise PromptError(f"{path.name}: {error}; a Jinja template is needed; correct the template") from error
    wrong = [name for name in template.blocks if not BLOCK_NAME.fullmatch(name)]
    if wrong or not template.blocks:
        raise PromptError(
            f"{path.name}: blocks {', '.join(wrong) or '(none)'}; each block is a message, named after its role "
            f"({', '.join(ROLES)}, or with a number as in user_2); rename the block"
        )
    return template


def text_from(name: str, values: list[bytes]) -> str:
    """The one text that an input tensor holds.

    Raises:
        PromptError: there are more or fewer, or it is no UTF-8.
    """
    if len(values) != 1:
        raise PromptError(f"{name}: {len(values)} texts; exactly 1 is needed; send a tensor of shape [1]")
    try:
        return values[0].decode("utf-8")
    except UnicodeDecodeError as error:
        raise PromptError(
            f"{name}: byte {error.start} is 0x{values[0][error.start]:02x}, which is no UTF-8; UTF-8 text is needed; "
            "encode the text as UTF-8"
        ) from error


def messages_from(
    template: Template, transcript: str | None, detections: str | None, question: str | None
) -> list[Message]:
    """The chat messages, in the order of the template's blocks.

    Raises:
        PromptError: nothing was asked about nothing, the detections are not what yolo_postprocess writes, or the
            template uses a name that it is not given.
    """
    heard = None if transcript is None else " ".join(transcript.split())
    counts = None if detections is None else counts_from(detections)
    asked = question_or_default(question, heard is not None, counts is not None)
    return render_messages(template, {"transcript": heard, "counts": counts, "question": asked})


def question_or_default(question: str | None, heard: bool, seen: bool) -> str:
    """The question, or when it is empty the one that fits what was given."""
    if question is not None and question.strip():
        return question.strip()
    if heard and seen:
        return ASK_ABOUT_BOTH
    if heard:
        return ASK_ABOUT_RECORDING
    if seen:
        return ASK_ABOUT_PICTURE
    raise PromptError("QUESTION: empty, with neither a recording nor a picture; some text is needed; send a question")


def counts_from(detections: str) -> Counts:
    """How often each label was detected, in the order in which the labels first appear (best first)."""
    try:
        found = json.loads(detections)
    except (ValueError, RecursionError) as error:
        raise PromptError(f"DETECTIONS: no JSON ({error}); {DETECTIONS_FORM}") from error
    items = found.get("detections") if isinstance(found, dict) else None
    if not isinstance(items, list):
        raise PromptError(f'DETECTIONS: JSON without a list "detections"; {DETECTIONS_FORM}')
    return list(Counter(_label_of(item, at) for at, item in enumerate(items)).items())


DETECTIONS_FORM = 'an object {"detections": [{"label": "person"}, ...]} is needed; send what yolo_postprocess gave'


def _label_of(item: Any, at: int) -> str:
    label = item.get("label") if isinstance(item, dict) else None
    if not isinstance(label, str) or not label.strip():
        raise PromptError(f'DETECTIONS: detection {at} has no "label" text; {DETECTIONS_FORM}')
    if any("\ud800" <= character <= "\udfff" for character in label):  # JSON's escapes can spell half a character
        raise PromptError(f"DETECTIONS: the label of detection {at} is no Unicode text; {DETECTIONS_FORM}")
    return " ".join(label.split())


def render_messages(template: Template, values: dict[str, Any]) -> list[Message]:
    """One message per block that renders to something."""
    context = template.new_context(values)
    messages = []
    for name, block in template.blocks.items():
        try:
            content = "".join(block(context)).strip()
        except Exception as error:  # an expression in a template can raise anything
            reason = str(error) or type(error).__name__
            raise PromptError(
                f"template.jinja, block {name}: {reason}; it must render for every request; correct the template"
            ) from error
        if content:
            messages.append({"role": name.split("_")[0], "content": content})
    return messages
