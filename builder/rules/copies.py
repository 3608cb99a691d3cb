"""Rules about tensors that are copied from a GPU to the host and need not be, and what says that they are not."""

from __future__ import annotations

from collections.abc import Iterator

from builder.catalog import Catalog, Entry
from builder.findings import Problem, rule
from builder.graph import EnsembleTensor, make_graph
from builder.handover.places import DEVICE_OUTPUTS, FORCE, Abode, abode_of, backend_name, parameter, runs_onnx_in_python


@rule(
    "TK911",
    "advice",
    "GPU tensors that a Python model on the GPU takes on the host",
    why=f"pb: {FORCE} is yes unless a config says no, and inputs are moved to the host (PYB-01)",
    server="accepts",
)
def moved_to_host(entry: Entry, catalog: Catalog) -> Iterator[Problem]:
    """A step makes a tensor on the GPU for a Python model that has the GPU, too, and never said where it wants it."""
    if catalog.profile != "gpu":
        return
    tensors = make_graph(entry).tensors
    for index, step in enumerate(entry.ensemble_steps()):
        model = catalog.entries.get(step.get("model_name", ""))
        if model is None or backend_name(model.config) != "python" or parameter(model.config, FORCE):
            continue
        abode = _abode(model, catalog)
        known = model.tensors("input")
        moved = [
            key
            for key, name in step.get("input_map", {}).items()
            if key in known and known[key].get("data_type") != "TYPE_STRING" and _is_on_gpu(tensors[name], catalog)
        ]
        if moved and abode.is_on_gpu:
            yield Problem(
                step=index,
                path=("ensemble_scheduling", "step", index, "input_map", moved[0]),
                found=f"{', '.join(moved)} {'lies' if len(moved) == 1 else 'lie'} on the GPU and "
                f"{'is' if len(moved) == 1 else 'are'} moved to the host for {model.name}, which runs on the GPU",
                expected=f"a {model.name} that says where it takes its inputs is needed",
                fix=f'Write parameters {{ key: "{FORCE}" value {{ string_value: "no" }} }} in {model.name} and read '
                'tensors by DLPack where is_cpu() is false, or write "yes" if its code wants them on the host',
            )


def _is_on_gpu(tensor: EnsembleTensor, catalog: Catalog) -> bool:
    makers = [(catalog.entries[end.model], end.key) for end in tensor.makers if end.model in catalog.entries]
    return any(_abode(model, catalog).leaves_on_device(key) for model, key in makers)


def _abode(model: Entry, catalog: Catalog) -> Abode:
    return abode_of(model, embedded=runs_onnx_in_python(catalog.target), devices=1)


@rule(
    "TK912",
    "error",
    "device_outputs that names no tensor the model can leave on a GPU",
    why="tritonkit's own parameter: served code, plan and report go by it, and a name that fits nothing is passed over",
    server="accepts",
)
def no_such_device_output(entry: Entry, catalog: Catalog) -> Iterator[Problem]:
    """Names that are no outputs, or strings, which live on the host."""
    if backend_name(entry.config) != "python":
        return
    known = entry.tensors("output")
    for name in parameter(entry.config, DEVICE_OUTPUTS).split():
        is_string = name in known and known[name].get("data_type") == "TYPE_STRING"
        if name == "none" or (name in known and not is_string):
            continue
        can = [one for one, declared in known.items() if declared.get("data_type") != "TYPE_STRING"]
        yield Problem(
            path=("parameters", DEVICE_OUTPUTS),
            found=f"{DEVICE_OUTPUTS} names {name}, {'a string' if is_string else 'which is no output'}",
            expected=f"names of {', '.join(can)} are needed, or none" if can else "none is needed: all are strings",
            fix="Correct the name, or take it out",
        )
