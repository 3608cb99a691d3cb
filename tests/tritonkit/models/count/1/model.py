"""Streams 0, 1, 2 and so on from a thread, until the number that was asked for or until nobody listens."""

import threading

import numpy as np
import triton_python_backend_utils as pb_utils


class TritonPythonModel:
    def execute(self, requests):
        for request in requests:
            up_to = int(pb_utils.get_input_tensor_by_name(request, "UP_TO").as_numpy()[0])
            threading.Thread(target=self.count, args=(up_to, request.get_response_sender())).start()

    def count(self, up_to, sender):
        import count_one  # a neighbour, loaded late and in a thread

        for value in range(up_to):
            if sender.is_cancelled():
                break
            sender.send(pb_utils.InferenceResponse([pb_utils.Tensor("N", count_one.array(np.int32, value))]))
        sender.send(flags=pb_utils.TRITONSERVER_RESPONSE_COMPLETE_FINAL)
