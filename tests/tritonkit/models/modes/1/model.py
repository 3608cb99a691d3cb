"""Does what its input MODE says, right and wrong, so that the server and the stand-in can be compared."""

import threading

import modes_helper
import numpy as np
import triton_python_backend_utils as pb_utils


class TritonPythonModel:
    def execute(self, requests):
        mode = pb_utils.get_input_tensor_by_name(requests[0], "MODE").as_numpy()[0].decode()
        return getattr(self, mode)(requests)

    def right(self, requests):
        return [self.answer(request) for request in requests]

    def answer(self, request):
        given = pb_utils.get_input_tensor_by_name(request, "X")
        x = np.ones((1, 2), np.float32) if given is None else given.as_numpy()
        words = np.array([name.encode() for name in sorted(request.requested_output_names())], dtype=np.object_)
        return pb_utils.InferenceResponse(
            [pb_utils.Tensor("Y", modes_helper.doubled(x)), pb_utils.Tensor("WORDS", words)]
        )

    def parameters(self, requests):
        said = [requests[0].parameters(), requests[0].request_id(), str(requests[0].correlation_id())]
        return [pb_utils.InferenceResponse([pb_utils.Tensor("WORDS", np.array(said, dtype=np.object_))])]

    def texts(self, requests):
        said = np.array(["ä", b"\xff", 3, None], dtype=np.object_)
        return [pb_utils.InferenceResponse([pb_utils.Tensor("WORDS", said)])]

    def byte_array(self, requests):
        return [pb_utils.InferenceResponse([pb_utils.Tensor("WORDS", np.array([b"a", b"bcd"]))])]

    def no_rows(self, requests):
        return [
            pb_utils.InferenceResponse(
                [pb_utils.Tensor("Y", np.zeros((0, 2), np.float32)), pb_utils.Tensor("WORDS", np.array([], np.object_))]
            )
        ]

    def no_tensors(self, requests):
        return [pb_utils.InferenceResponse([])]

    def one_missing(self, requests):
        return [pb_utils.InferenceResponse([pb_utils.Tensor("Y", np.ones((1, 2), np.float32))])]

    def unknown_output(self, requests):
        return [pb_utils.InferenceResponse([pb_utils.Tensor("Z", np.ones((1, 2), np.float32))])]

    def wrong_type(self, requests):
        return [pb_utils.InferenceResponse([pb_utils.Tensor("Y", np.ones((1, 2), np.float64))])]

    def wrong_rank(self, requests):
        return [pb_utils.InferenceResponse([pb_utils.Tensor("Y", np.ones((2,), np.float32))])]

    def wrong_size(self, requests):
        return [pb_utils.InferenceResponse([pb_utils.Tensor("Y", np.ones((1, 3), np.float32))])]

    def twice(self, requests):
        tensor = pb_utils.Tensor("Y", np.ones((1, 2), np.float32))
        return [pb_utils.InferenceResponse([tensor, tensor])]

    def error(self, requests):
        return [pb_utils.InferenceResponse(error=pb_utils.TritonError("X: bad", pb_utils.TritonError.INVALID_ARG))]

    def error_and_tensors(self, requests):
        tensor = pb_utils.Tensor("Y", np.ones((1, 2), np.float32))
        return [pb_utils.InferenceResponse([tensor], pb_utils.TritonError("X: bad"))]

    def raises(self, requests):
        raise ValueError("these words")

    def raises_in_helper(self, requests):
        modes_helper.fails()

    def raises_triton(self, requests):
        raise pb_utils.TritonModelException("its own words")

    def none(self, requests):
        return None

    def empty(self, requests):
        return []

    def too_many(self, requests):
        return [self.answer(requests[0]), self.answer(requests[0])]

    def not_a_list(self, requests):
        return self.answer(requests[0])

    def list_of_none(self, requests):
        return [None]

    def list_of_tensors(self, requests):
        return [pb_utils.Tensor("Y", np.ones((1, 2), np.float32))]

    def tuple(self, requests):
        return tuple(self.answer(request) for request in requests)

    def sender(self, requests):
        for request in requests:
            request.get_response_sender().send(
                self.answer(request), flags=pb_utils.TRITONSERVER_RESPONSE_COMPLETE_FINAL
            )

    def sender_from_thread(self, requests):
        for request in requests:
            threading.Thread(target=self.send_later, args=(request.get_response_sender(), self.answer(request))).start()

    def send_later(self, sender, answer):
        sender.send(answer, flags=pb_utils.TRITONSERVER_RESPONSE_COMPLETE_FINAL)

    def sender_in_two_steps(self, requests):
        for request in requests:
            sender = request.get_response_sender()
            sender.send(self.answer(request))
            sender.send(flags=pb_utils.TRITONSERVER_RESPONSE_COMPLETE_FINAL)

    def sender_and_return(self, requests):
        for request in requests:
            request.get_response_sender().send(
                self.answer(request), flags=pb_utils.TRITONSERVER_RESPONSE_COMPLETE_FINAL
            )
        return self.right(requests)

    def sender_twice(self, requests):
        for request in requests:
            sender = request.get_response_sender()
            sender.send(self.answer(request))
            sender.send(self.answer(request), flags=pb_utils.TRITONSERVER_RESPONSE_COMPLETE_FINAL)

    def sender_error(self, requests):
        for request in requests:
            answer = pb_utils.InferenceResponse(error=pb_utils.TritonError("late", pb_utils.TritonError.UNAVAILABLE))
            request.get_response_sender().send(answer, flags=pb_utils.TRITONSERVER_RESPONSE_COMPLETE_FINAL)

    def sender_raises_after_final(self, requests):
        sender = requests[0].get_response_sender()
        sender.send(self.answer(requests[0]), flags=pb_utils.TRITONSERVER_RESPONSE_COMPLETE_FINAL)
        raise ValueError("too late")

    def sender_then_raises(self, requests):
        requests[0].get_response_sender()
        raise ValueError("before sending")
