"""Runs the Python statements it is sent and answers with what they left in `result`, or with the exception."""

import numpy as np
import triton_python_backend_utils as pb_utils


class TritonPythonModel:
    def initialize(self, args):
        self.args = args

    def execute(self, requests):
        responses = []
        for request in requests:
            code = pb_utils.get_input_tensor_by_name(request, "CODE").as_numpy()[0].decode()
            names = {"pb_utils": pb_utils, "np": np, "request": request, "args": self.args}
            try:
                exec(code, names)
                result = repr(names["result"])
            except Exception as error:
                result = f"{type(error).__name__}: {str(error)[:300]}"
            tensor = pb_utils.Tensor("RESULT", np.array([result.encode()], dtype=np.object_))
            responses.append(pb_utils.InferenceResponse([tensor]))
        return responses
