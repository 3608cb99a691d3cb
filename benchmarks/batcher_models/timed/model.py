"""A model whose executions take what its parameters say, beside the CPU as on a GPU: it waits, and doubles its input.

Parameters: `base_us` and `each_us`; a batch of n rows takes base_us + n * each_us.
"""

import json
import time

import numpy as np
import triton_python_backend_utils as pb_utils


class TritonPythonModel:
    """One instance; only one batch runs on it at a time."""

    def initialize(self, args):
        told = json.loads(args["model_config"])["parameters"]
        self.base_s, self.each_s = (int(told[name]["string_value"]) / 1e6 for name in ("base_us", "each_us"))

    def execute(self, requests):
        began = time.perf_counter()
        arrays = [pb_utils.get_input_tensor_by_name(one, "X").as_numpy() for one in requests]
        rows = sum(len(array) for array in arrays)
        left_s = self.base_s + rows * self.each_s - (time.perf_counter() - began)
        if left_s > 0:
            time.sleep(left_s)
        return [pb_utils.InferenceResponse([pb_utils.Tensor("Y", array * np.float32(2))]) for array in arrays]
