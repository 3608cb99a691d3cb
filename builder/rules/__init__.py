"""All rules. One rule is one function; a new one is added to its list here.

`MODEL_RULES` are asked of every model, `ENSEMBLE_RULES` of ensembles, `PIPELINE_RULES` of what a person declared.
"""

from __future__ import annotations

from typing import Any

from builder.catalog import Entry
from builder.findings import Rule
from builder.rules import (
    edges,
    fields,
    instances,
    names,
    pipelines,
    responses,
    scheduling,
    tensors,
    versions,
    warmup,
    wiring,
)
from builder.rules.pipelines import Declared

MODEL_RULES: tuple[Rule[Entry], ...] = (
    fields.unknown_field,
    fields.wrong_type,
    fields.unknown_value,
    fields.two_of_one,
    fields.newer_than_target,
    names.unusable_name,
    names.other_name,
    names.ensemble_platform,
    names.no_backend,
    names.other_backend,
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
    scheduling.ordering,
    scheduling.cache,
    scheduling.override_without_default,
    scheduling.no_batcher,
    scheduling.bounded_step,
    instances.gpu_on_cpu,
    instances.gpus_without_gpu,
    instances.profile_outside_tensorrt,
    instances.tensorrt_on_cpu,
    instances.many_engines,
    instances.negative_count,
    warmup.unknown_sample,
    warmup.missing_sample,
    warmup.wrong_sample,
    warmup.batch_of_sample,
    versions.no_version,
    versions.some_versions,
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
    edges.data_types,
    edges.dims,
    edges.batch_size,
    edges.effective_batch,
    responses.mixed_inputs,
    responses.mixed_outputs,
    responses.optional_into_required,
    scheduling.not_on_ensembles,
)

PIPELINE_RULES: tuple[Rule[Declared], ...] = (
    pipelines.two_models,
    pipelines.not_optional,
    pipelines.too_many_choices,
    pipelines.names_twice,
)

ALL_RULES: tuple[Rule[Any], ...] = (*MODEL_RULES, *ENSEMBLE_RULES, *PIPELINE_RULES)
