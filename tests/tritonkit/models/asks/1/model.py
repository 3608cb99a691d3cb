"""Asks other models (BLS) as its input MODE says, and tells what came back."""

import asyncio

import numpy as np
import triton_python_backend_utils as pb_utils


def told(response):
    if response.has_error():
        return f"{response.error().code().name}: {response.error().message()}"
    return str([(tensor.name(), tensor.as_numpy().tolist()) for tensor in response.output_tensors()])


def request(model, outputs, **arrays):
    inputs = [pb_utils.Tensor(name, array) for name, array in arrays.items()]
    return pb_utils.InferenceRequest(model_name=model, requested_output_names=outputs, inputs=inputs)


def row(*values, dtype=np.float32):
    return np.array([values], dtype)


class TritonPythonModel:
    def execute(self, requests):
        mode = pb_utils.get_input_tensor_by_name(requests[0], "MODE").as_numpy()[0].decode()
        said = getattr(self, mode)()
        tensor = pb_utils.Tensor("SAID", np.array(said, dtype=np.object_))
        return [pb_utils.InferenceResponse([tensor])]

    def right(self):
        return [told(request("echo", ["OUT"], IN=row(1, 2)).exec())]

    def all_outputs(self):
        return [told(request("echo", [], IN=row(1, 2)).exec())]

    def unknown_model(self):
        return [told(request("nobody", ["OUT"], IN=row(1, 2)).exec())]

    def no_input(self):
        return [told(request("echo", ["OUT"]).exec())]

    def wrong_type(self):
        return [told(request("echo", ["OUT"], IN=row(1, 2, dtype=np.int64)).exec())]

    def wrong_rank(self):
        return [told(request("echo", ["OUT"], IN=np.zeros((1, 2, 3), np.float32)).exec())]

    def unknown_output(self):
        return [told(request("echo", ["OTHER"], IN=row(1, 2)).exec())]

    def it_raises(self):
        return [told(request("echo", ["OUT"], IN=row(-1)).exec())]

    def it_answers_with_error(self):
        return [told(request("echo", ["OUT"], IN=row(-2)).exec())]

    def decoupled(self):
        return [told(each) for each in request("count", ["N"], UP_TO=np.array([2], np.int32)).exec(decoupled=True)]

    def decoupled_not_said(self):
        return [told(request("count", ["N"], UP_TO=np.array([2], np.int32)).exec())]

    def decoupled_refused(self):
        return [told(each) for each in request("count", ["N"]).exec(decoupled=True)]

    def decoupled_of_plain(self):
        return [told(each) for each in request("echo", ["OUT"], IN=row(3)).exec(decoupled=True)]

    def at_once(self):
        async def both():
            return await asyncio.gather(*(request("echo", ["OUT"], IN=row(value)).async_exec() for value in (4, 5)))

        return [told(each) for each in asyncio.run(both())]
