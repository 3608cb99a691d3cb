"""config.pbtxt as the server hands it to a model: everything it left out filled in, as a dictionary."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from google.protobuf import json_format, text_format
from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import Message
from tritonclient.grpc import model_config_pb2

from tritonkit.testing.errors import LoadError


def read_config(folder: Path, profile: str | None = None) -> dict[str, Any]:
    """The configuration of the model in `folder`; a folder without config.pbtxt has only defaults.

    With a profile it is that of `configs/<profile>.pbtxt`, where there is one.

    Raises:
        LoadError: the file is not valid.
    """
    other = folder / "configs" / f"{profile}.pbtxt"
    path = other if profile and other.is_file() else folder / "config.pbtxt"
    config = model_config_pb2.ModelConfig()
    if path.is_file():
        try:
            text_format.Parse(path.read_text(encoding="utf-8"), config)
        except text_format.ParseError as error:
            raise LoadError(f"{path}: {error}") from error
    fill_in(config, folder.name)
    if config.backend != "python":
        raise LoadError(f"{path}: backend is '{config.backend}'; the stand-in runs models of backend 'python'")
    return as_dict(config)


def normalized(config: dict[str, Any]) -> dict[str, Any]:
    """A configuration after `auto_complete_config`, its new entries complete too.

    Raises:
        LoadError: it is no configuration any more.
    """
    try:
        return as_dict(json_format.ParseDict(config, model_config_pb2.ModelConfig()))
    except json_format.ParseError as error:
        raise LoadError(f"auto_complete_config made a configuration that is not valid: {error}") from error


def fill_in(config: Any, name: str) -> None:
    """What the server itself adds before the model sees the configuration."""
    if config.name and config.name != name:
        raise LoadError(f"unexpected directory name '{name}' for model '{config.name}', directory name must equal name")
    config.name = name
    config.backend = config.backend or "python"
    config.default_model_filename = config.default_model_filename or "model.py"
    if not config.HasField("version_policy"):
        config.version_policy.latest.num_versions = 1
    for memory in (config.optimization.input_pinned_memory, config.optimization.output_pinned_memory):
        memory.enable = True
    if not config.instance_group:
        config.instance_group.add(name=name)
    for index, group in enumerate(config.instance_group):
        group.name = group.name or f"{name}_{index}"
        group.count = group.count or 1
        if group.kind == group.KIND_AUTO:
            group.kind = group.KIND_CPU


def as_dict(message: Message) -> dict[str, Any]:
    """A message with all its plain fields, set or not, and those messages in it that are set; names as in the file."""
    return {
        field.name: value_of(field, getattr(message, field.name))
        for field in message.DESCRIPTOR.fields
        if not field.has_presence or message.HasField(field.name)
    }


def value_of(field: FieldDescriptor, value: Any) -> Any:
    """The value of one field in Python's own types."""
    if field.message_type is not None and field.message_type.GetOptions().map_entry:
        of_value = field.message_type.fields_by_name["value"]
        return {key: single_value(of_value, value[key]) for key in value}
    if field.is_repeated:
        return [single_value(field, each) for each in value]
    return single_value(field, value)


def single_value(field: FieldDescriptor, value: Any) -> Any:
    """One element: a message as a dictionary, an enum by its name."""
    if field.message_type is not None:
        return as_dict(value)
    if field.enum_type is not None:
        return field.enum_type.values_by_number[value].name
    return value
