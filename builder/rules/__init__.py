"""All rules. One rule is one function; a new one is added to its list here.

`MODEL_RULES` are asked of every model, `ENSEMBLE_RULES` of ensembles, `PIPELINE_RULES` of what a person declared.
"""

from __future__ import annotations

from typing import Any

from builder.catalog import Entry
from builder.findings import Rule
from builder.launch import Launch
from builder.rules import (
    backends,
    batchio,
    copies,
    dependencies,
    edges,
    fields,
    folders,
    instances,
    launch,
    names,
    onnx,
    parameters,
    pipelines,
    python,
    requests,
    responses,
    scheduling,
    sequences,
    starts,
    tensorrt,
    tensors,
    text,
    versions,
    warmup,
    wiring,
)
from builder.rules.pipelines import Declared

# Of the text and its fields: also asked of a model whose text does not parse.
_OF_THE_TEXT: tuple[Rule[Entry], ...] = (
    text.not_parsed,
    text.given_twice,
    text.placeholder,
    text.placeholder_in_string,
    text.duplicate_key,
    text.not_utf8,
    fields.unknown_field,
    fields.unknown_in_entry,
    fields.wrong_type,
    fields.unknown_value,
    fields.unknown_number,
    fields.two_of_one,
    fields.newer_than_target,
)

MODEL_RULES: tuple[Rule[Entry], ...] = (
    *_OF_THE_TEXT,
    names.unusable_name,
    names.other_name,
    names.ensemble_platform,
    names.no_backend,
    names.other_backend,
    names.idle_platform,
    backends.absent_backend,
    backends.absent_runtime,
    backends.absent_agent,
    backends.no_agents,
    backends.metric_tags,
    backends.absent_accelerator,
    parameters.force_cpu,
    parameters.near_key,
    copies.no_such_device_output,
    parameters.environment_path,
    parameters.environment_fits,
    parameters.memory_limit_undone,
    tensors.nameless,
    tensors.typeless,
    tensors.bad_dims,
    tensors.duplicates,
    tensors.bad_reshape,
    tensors.format_dims,
    tensors.only_tensorrt,
    tensors.negative_batch,
    scheduling.batching_without_batches,
    scheduling.preferred_sizes,
    scheduling.default_priority,
    scheduling.priority_policies,
    scheduling.no_levels,
    scheduling.ordering,
    scheduling.cache,
    scheduling.cache_flag,
    scheduling.override_without_default,
    scheduling.no_batcher,
    scheduling.bounded_step,
    sequences.control_names,
    sequences.control_kinds,
    sequences.control_values,
    sequences.slot_utilization,
    sequences.initial_state,
    sequences.incomplete_state,
    sequences.too_many_sequences,
    batchio.batch_sources,
    batchio.batch_types,
    batchio.batch_targets,
    batchio.ragged,
    batchio.ragged_python,
    instances.gpu_on_cpu,
    instances.gpus_without_gpu,
    instances.profile_outside_tensorrt,
    instances.tensorrt_on_cpu,
    instances.many_engines,
    instances.negative_count,
    instances.rate_limiter,
    instances.separate_lifelines,
    warmup.unknown_sample,
    warmup.missing_sample,
    warmup.wrong_sample,
    warmup.batch_of_sample,
    warmup.idle_sample,
    versions.no_version,
    versions.some_versions,
    folders.overflowing_version,
    folders.passed_over,
    folders.other_number,
    folders.no_model_file,
    folders.config_is_folder,
    folders.stranger,
    folders.unread_config,
    folders.unread_part,
    folders.label_file,
    folders.data_files,
    python.no_python,
    python.no_class,
    python.no_execute,
    python.other_arguments,
    python.other_tensor,
    python.answers_nothing,
    python.answers_first,
    python.numpy_on_gpu,
    python.single_call,
    python.absent_callee,
    onnx.no_onnx,
    onnx.unknown_tensor,
    onnx.missing_tensor,
    onnx.other_type,
    onnx.other_dims,
    onnx.fixed_batch,
    onnx.newer_file,
    onnx.fixed_rows,
    tensorrt.other_release,
    tensorrt.no_manifest,
)

ENSEMBLE_RULES: tuple[Rule[Entry], ...] = (
    wiring.incomplete,
    wiring.unknown_model,
    wiring.unknown_input,
    wiring.unknown_output,
    wiring.unmapped_input,
    wiring.unmade,
    wiring.two_makers,
    wiring.overwritten_input,
    wiring.circle,
    wiring.unused_input,
    wiring.unused_tensor,
    wiring.ensembles_in_a_circle,
    wiring.unknown_version,
    wiring.doubled_output,
    starts.refuses_before_another_begins,
    starts.refuses_beside_another,
    edges.data_types,
    edges.dims,
    edges.batch_size,
    requests.effective_batch,
    requests.varying_size,
    requests.rows_into_one,
    requests.rows_beyond_batch,
    requests.different_batches,
    responses.mixed_inputs,
    responses.mixed_outputs,
    responses.optional_into_required,
    responses.decoupled_unsaid,
    copies.moved_to_host,
    scheduling.not_on_ensembles,
)

PIPELINE_RULES: tuple[Rule[Declared], ...] = (
    pipelines.two_models,
    pipelines.not_optional,
    pipelines.too_many_choices,
    pipelines.names_twice,
)

# Asked of every model, and alone of one whose text does not parse.
TEXT_RULES: tuple[Rule[Entry], ...] = (
    *_OF_THE_TEXT,
    folders.overflowing_version,
    folders.config_is_folder,
    folders.unread_config,
    folders.unread_part,
)

# Asked alone of a folder that is no model.
STRANGER_RULES: tuple[Rule[Entry], ...] = (folders.stranger, folders.overflowing_version, folders.unread_part)

# Needs the findings about every other model; asked last.
STEP_THAT_DOES_NOT_LOAD: Rule[Entry] = dependencies.step_that_does_not_load

# Asked of the line that starts a server.
LAUNCH_RULES: tuple[Rule[Launch], ...] = (
    launch.newer_flag,
    launch.backend_keys,
    launch.byte_sizes,
    launch.resources,
    launch.load_model,
)

ALL_RULES: tuple[Rule[Any], ...] = (
    *MODEL_RULES,
    *ENSEMBLE_RULES,
    STEP_THAT_DOES_NOT_LOAD,
    *LAUNCH_RULES,
    *PIPELINE_RULES,
)
