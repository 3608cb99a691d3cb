"""Answers with what it got; -1 raises, -2 is answered with an error."""

import triton_python_backend_utils as pb_utils


class TritonPythonModel:
    def execute(self, requests):
        return [self.answer(pb_utils.get_input_tensor_by_name(request, "IN").as_numpy()) for request in requests]

    def answer(self, given):
        if given[0, 0] == -1:
            raise ValueError("minus one")
        if given[0, 0] == -2:
            return pb_utils.InferenceResponse(error=pb_utils.TritonError("minus two", pb_utils.TritonError.INVALID_ARG))
        return pb_utils.InferenceResponse([pb_utils.Tensor("OUT", given)])
