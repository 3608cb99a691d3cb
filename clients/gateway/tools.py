"""OpenAI's `tools` and `tool_choice`: what the chat template is told, and what binds the answer to a call."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from clients.gateway.problems import invalid, unsupported

Json = dict[str, Any]
FORM = '{"type": "function", "function": {"name": "...", "parameters": {...}}} is needed'


@dataclass(frozen=True, slots=True, kw_only=True)
class Tools:
    """The tools of one request.

    Attributes:
        definitions: as the caller gave them; the chat template gets them so.
        schemas: by name, the JSON schema of the arguments.
        forced: the one tool that must be called, by tool_choice; "" leaves the choice to the model.
        is_required: some tool must be called.
        is_single: one call at most (parallel_tool_calls: false).
    """

    definitions: tuple[Json, ...]
    schemas: Mapping[str, Json]
    forced: str = ""
    is_required: bool = False
    is_single: bool = False

    def binding(self) -> Json:
        """The engine's parameter that lets it write nothing but the call that must be made; empty if none must be."""
        if self.forced:
            return {"json": self.schemas[self.forced]}
        if not self.is_required:
            return {}
        calls = [
            {
                "type": "object",
                "properties": {"name": {"enum": [name]}, "arguments": schema},
                "required": ["name", "arguments"],
                "additionalProperties": False,
            }
            for name, schema in self.schemas.items()
        ]
        most = {"maxItems": 1} if self.is_single else {}
        return {"json": {"type": "array", "minItems": 1, **most, "items": {"anyOf": calls}}}


def tools_of(extra: Json) -> Tools | None:
    """The tools that a body tells of, taken out of `extra`; None when it tells of none, or none may be called.

    Raises:
        Problem: one of them is no function, or the choice is none of them.
    """
    given, choice = extra.pop("tools", None), extra.pop("tool_choice", None)
    is_single = extra.pop("parallel_tool_calls", None) is False
    if not given:
        if given not in (None, []):
            raise invalid("tools", f"{given!a:.100}", "a list of tools is needed")
        if choice not in (None, "none", "auto"):
            raise invalid("tool_choice", "no tools to choose from", "tools is needed with it")
        return None
    if not isinstance(given, list):
        raise invalid("tools", f"a {type(given).__name__}", "a list of tools is needed")
    schemas = dict(_schema(one, place) for place, one in enumerate(given))
    forced = _forced(choice, schemas)
    if choice == "none":
        return None
    is_required = choice == "required"
    return Tools(definitions=tuple(given), schemas=schemas, forced=forced, is_required=is_required, is_single=is_single)


def _schema(tool: Any, place: int) -> tuple[str, Json]:
    param = f"tools.{place}"
    kind = tool.get("type") if isinstance(tool, dict) else None
    if isinstance(kind, str) and kind != "function":
        raise unsupported(param, f"a tool of type {kind!a:.100}; functions are taken")
    function = tool.get("function") if kind else None
    if not isinstance(function, dict) or not isinstance(function.get("name"), str) or not function["name"]:
        raise invalid(param, "no function with a name", FORM)
    schema = function.get("parameters") or {"type": "object"}
    if not isinstance(schema, dict):
        raise invalid(param, f"its parameters are a {type(schema).__name__}", FORM)
    return function["name"], schema


def _forced(choice: Any, schemas: Mapping[str, Json]) -> str:
    if choice in (None, "none", "auto", "required"):
        return ""
    kind = choice.get("type") if isinstance(choice, dict) else None
    if kind == "allowed_tools":
        raise unsupported("tool_choice", "allowed_tools; send the allowed ones alone as tools")
    function = choice.get("function") if kind == "function" else None
    name = function.get("name") if isinstance(function, dict) else None
    if not isinstance(name, str) or name not in schemas:
        found = f"{name!a:.100} is none of the tools" if name else f"{choice!a:.100}"
        raise invalid("tool_choice", found, "none, auto, required, or one of the tools by name is needed")
    return name
