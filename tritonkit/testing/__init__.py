"""Runs the model.py of a Triton Python model in a test, without a server.

    from tritonkit.testing import load_model

    def test_doubles():
        with load_model("model_repository/doubler") as model:
            answer = model.infer({"X": np.array([1, 2], np.float32)})
        assert answer["Y"].tolist() == [2, 4]

`load_model` reads config.pbtxt, imports model.py with its neighbours as the server does, runs `auto_complete_config`
and `initialize`, and gives a `Model`:

- `model.infer({...})` is one request and its answer; `model.stream({...})` runs a request and iterates over its
  answers, or cancels it; `model.execute([{...}, {...}])` is one `execute` call with several requests, as Triton's
  batcher makes it.
- An error of the model arrives as `ModelError` with the words and the code that a client would get; a request that does
  not fit config.pbtxt is refused with the server's words (`RequestRefused`).
- What the server never checks is refused as `RuleBroken`: an output that the configuration has not, of another type or
  shape, twice; a request that is never answered; an exception after the answer. `strict=False` lets wrong outputs pass.
- `models={"encoder": other, "detector": function}` answers requests to other models (BLS): a loaded model, or a plain
  function from a dictionary of arrays to one.

- `on_gpu(array)` is an input, or an output of another model, that the model sees as a tensor on a GPU, to be taken by
  DLPack; `load_model(folder, profile="gpu")` loads it with `configs/gpu.pbtxt`, its instance on a GPU.

The model gets `triton_python_backend_utils` as it is in Triton 2.51 (container 24.10), on the CPU. It is compared with
the real server by tests/tritonkit/test_testing_against_server.py.
"""

from tritonkit.testing.errors import LoadError, ModelError, RequestRefused, RuleBroken, TestingError
from tritonkit.testing.model import Model, load_model
from tritonkit.testing.pending import Pending
from tritonkit.testing.values import on_gpu

__all__ = [
    "LoadError",
    "Model",
    "ModelError",
    "Pending",
    "RequestRefused",
    "RuleBroken",
    "TestingError",
    "load_model",
    "on_gpu",
]
