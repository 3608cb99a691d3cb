"""A decoupled model that streams as its input MODE says, right and wrong."""

import threading

import numpy as np
import triton_python_backend_utils as pb_utils

FINAL = pb_utils.TRITONSERVER_RESPONSE_COMPLETE_FINAL


def number(value):
    return pb_utils.InferenceResponse([pb_utils.Tensor("N", np.array([value], np.int32))])


class TritonPythonModel:
    def execute(self, requests):
        for request in requests:
            mode = pb_utils.get_input_tensor_by_name(request, "MODE").as_numpy()[0].decode()
            answer = getattr(self, mode)(request, request.get_response_sender())
        return answer

    def three(self, request, sender):
        for value in range(3):
            sender.send(number(value))
        sender.send(flags=FINAL)

    def final_with_data(self, request, sender):
        sender.send(number(0))
        sender.send(number(1), flags=FINAL)

    def nothing(self, request, sender):
        sender.send(flags=FINAL)

    def empty_response(self, request, sender):
        sender.send(pb_utils.InferenceResponse([]))
        sender.send(flags=FINAL)

    def from_thread(self, request, sender):
        threading.Thread(target=self.three, args=(request, sender)).start()

    def error_in_stream(self, request, sender):
        sender.send(number(0))
        sender.send(pb_utils.InferenceResponse(error=pb_utils.TritonError("half way")))
        sender.send(number(2))
        sender.send(flags=FINAL)

    def error_final(self, request, sender):
        sender.send(number(0))
        error = pb_utils.TritonError("at the end", pb_utils.TritonError.CANCELLED)
        sender.send(pb_utils.InferenceResponse(error=error), flags=FINAL)

    def raises(self, request, sender):
        raise ValueError("no answer")

    def raises_after_one(self, request, sender):
        sender.send(number(0))
        raise ValueError("no more")

    def after_final(self, request, sender):
        sender.send(number(0), flags=FINAL)
        sender.send(number(1))

    def final_twice(self, request, sender):
        sender.send(number(0), flags=FINAL)
        sender.send(flags=FINAL)

    def returns_list(self, request, sender):
        return [number(0)]

    def wrong_flag(self, request, sender):
        try:
            sender.send(number(0), flags=3)
        except pb_utils.TritonModelException as error:
            words = np.array([str(error).encode()], dtype=np.object_)
            sender.send(pb_utils.InferenceResponse([pb_utils.Tensor("WORDS", words)]))
        sender.send(flags=FINAL)

    def unknown_output(self, request, sender):
        sender.send(pb_utils.InferenceResponse([pb_utils.Tensor("Z", np.array([0], np.int32))]))
        sender.send(flags=FINAL)

    def wrong_type(self, request, sender):
        sender.send(pb_utils.InferenceResponse([pb_utils.Tensor("N", np.array([0], np.int64))]), flags=FINAL)
