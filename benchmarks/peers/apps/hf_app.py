"""The language model as articles wrap it: FastAPI around `generate` of Hugging Face Transformers, one at a time.

    python -m benchmarks.peers.apps.hf_app PORT chat

With `assistant` instead, the whole assistant of the articles: Whisper, YOLO and `generate` in one process.
"""

import json
import sys
import threading
from typing import Annotated, Any

import torch
import uvicorn
from fastapi import Depends, FastAPI, Response
from transformers import AutoModelForCausalLM, AutoTokenizer

from benchmarks.peers.apps.fastapi_app import body_of
from benchmarks.peers.work.asking import MAX_TOKENS, Both, messages_of
from benchmarks.peers.work.places import WEIGHTS
from benchmarks.peers.work.services import ask_in


class Writer:
    """`generate`, greedy. Calls come from threads and wait for each other: the model is not shared otherwise."""

    def __init__(self) -> None:
        self._tokenizer = AutoTokenizer.from_pretrained(WEIGHTS)
        self._model = AutoModelForCausalLM.from_pretrained(WEIGHTS, dtype=torch.float32).eval()
        self._one_at_a_time = threading.Lock()

    def write(self, messages: list[dict[str, str]]) -> str:
        """The next message."""
        given = self._tokenizer.apply_chat_template(
            messages, add_generation_prompt=True, return_tensors="pt", return_dict=True
        )
        with self._one_at_a_time, torch.inference_mode():
            ids = self._model.generate(**given, max_new_tokens=MAX_TOKENS, do_sample=False)
        return self._tokenizer.decode(ids[0, given["input_ids"].shape[1] :], skip_special_tokens=True).strip()


def make_chat() -> FastAPI:
    """POST /chat: messages in, the text out."""
    app, writer = FastAPI(), Writer()

    @app.post("/chat")
    def answer(body: Annotated[bytes, Depends(body_of)]) -> dict[str, Any]:
        return {"text": writer.write(json.loads(body)["messages"])}

    return app


def make_assistant() -> FastAPI:
    """POST /assistant: picture, recording and question in, all three answers out."""
    app, both, writer = FastAPI(), Both(), Writer()

    @app.post("/assistant")
    def answer(body: Annotated[bytes, Depends(body_of)]) -> Response:
        picture, samples, question = ask_in(body)
        noticed = both.batch([(picture, samples)])[0]
        text = writer.write(messages_of(noticed["transcript"], noticed["detections"], question))
        return Response(json.dumps({**noticed, "text": text}), media_type="application/json")

    return app


if __name__ == "__main__":
    made = make_chat() if sys.argv[2] == "chat" else make_assistant()
    uvicorn.run(made, host="127.0.0.1", port=int(sys.argv[1]), log_level="warning")
