"""Configs as Triton's protobuf message and its text: the only importer of protobuf.

In: nested dicts by Triton's names. Out: text of a `config.pbtxt`; and back.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from builder.errors import DeclarationError, RenderError


def config_text(config: Mapping[str, Any]) -> str:
    """The text of a config. Fields come in the order of the message, maps in the order of their keys.

    A `max_batch_size: 0` does not show in it: 0 is the field's default, and the text format leaves defaults out.

    Raises:
        RenderError: the message has no such field, or cannot hold a value.
    """
    from google.protobuf import text_format

    return text_format.MessageToString(config_message(config), as_utf8=True, use_short_repeated_primitives=True)


def config_message(config: Mapping[str, Any]) -> Any:
    """The `inference.ModelConfig` message of a config.

    Raises:
        RenderError: the message has no such field, or cannot hold a value.
    """
    from tritonclient.grpc.model_config_pb2 import ModelConfig

    message = ModelConfig()
    _fill(message, config, str(config.get("name", "a config")))
    return message


def parsed_config(text: str, where: str) -> dict[str, Any]:
    """The config in a text, as nested dicts; fields that the text does not give are not in it.

    Raises:
        DeclarationError: the text is not one of Triton's ModelConfig.
    """
    from google.protobuf import text_format
    from tritonclient.grpc.model_config_pb2 import ModelConfig

    try:
        message = text_format.Parse(text, ModelConfig())
    except text_format.ParseError as error:
        raise DeclarationError(
            where=where,
            found=str(error),
            expected="text of Triton's ModelConfig message is needed",
            fix="Correct the file at that line and column",
        ) from error
    return config_of(message)


def config_of(message: Any) -> dict[str, Any]:
    """The message as nested dicts and lists: enums by name, maps as dicts, only the fields that are set."""
    return {field.name: _value_of(field, value) for field, value in message.ListFields()}


def _is_map(field: Any) -> bool:
    return bool(field.message_type is not None and field.message_type.GetOptions().map_entry)


def _value_of(field: Any, value: Any) -> Any:
    if _is_map(field):
        of = field.message_type.fields_by_name["value"]
        return {key: _scalar_of(of, one) for key, one in value.items()}
    if field.is_repeated:
        return [_scalar_of(field, one) for one in value]
    return _scalar_of(field, value)


def _scalar_of(field: Any, value: Any) -> Any:
    if field.message_type is not None:
        return config_of(value)
    if field.enum_type is not None:
        known = field.enum_type.values_by_number.get(value)
        return known.name if known is not None else value
    return value


def _fill(message: Any, values: Mapping[str, Any], where: str) -> None:
    message.SetInParent()
    for name, value in values.items():
        field = message.DESCRIPTOR.fields_by_name.get(name)
        if field is None:
            raise RenderError(
                where=where,
                found=f"{message.DESCRIPTOR.name} has no field {name}",
                expected=f"one of {', '.join(known.name for known in message.DESCRIPTOR.fields)} is needed",
                fix="Ask for the findings of the rules, which name the nearest field",
            )
        try:
            _put(message, field, value, f"{where}, {name}")
        except (TypeError, ValueError, KeyError, AttributeError) as error:
            raise RenderError(
                where=f"{where}, {name}",
                found=f"{value!r} does not fit ({error})",
                expected="a value of the field's type is needed",
                fix="Ask for the findings of the rules, which name the type",
            ) from error


def _put(message: Any, field: Any, value: Any, where: str) -> None:
    if _is_map(field):
        target = getattr(message, field.name)
        of = field.message_type.fields_by_name["value"]
        for key, one in value.items():
            if of.message_type is not None:
                _fill(target[key], one, f"{where}[{key}]")
            else:
                target[key] = one
    elif field.is_repeated:
        target = getattr(message, field.name)
        for one in value:
            if field.message_type is not None:
                _fill(target.add(), one, where)
            else:
                target.append(_plain(field, one))
    elif field.message_type is not None:
        _fill(getattr(message, field.name), value, where)
    else:
        setattr(message, field.name, _plain(field, value))


def _plain(field: Any, value: Any) -> Any:
    if field.enum_type is not None and isinstance(value, str):
        return field.enum_type.values_by_name[value].number
    return value
