"""How often the small Llama answers exactly right, on prompts that it was not trained on.

    python -m weights.llm.measure [CHECKPOINT] [--failures]

An answer counts only when the whole text is exactly right under greedy decoding. Prompts are made by the prompt step's
template and the checkpoint's chat template, as served.
"""

import argparse
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch
from transformers import LlamaForCausalLM, PreTrainedTokenizerFast

from weights.llm.heard import PEOPLE_SAY, WHISPER_HEARD
from weights.llm.tiny_prompts import TWO_WORD_LABELS, Example, ExampleMaker, answer_for
from weights.llm.train_tiny import Batches, PromptText, right_answers

CHECKPOINT = Path(__file__).parent / "checkpoint"
SEED = "measure"
SEEN = (
    (("person", 4), ("bus", 1)),
    (("person", 3), ("tie", 2)),
    (("chair", 7), ("dining table", 1), ("cup", 3)),
    (("cup", 1),),
    (("motorbike", 1),),
    (),
)


def example_sets(count: int) -> Iterator[tuple[str, list[Example]]]:
    """Named lists of examples, from what training looked like to what it did not."""
    yield "random, words and questions as in training", _random(count, held_out=False, max_words=24)
    yield "random, half of the words and all questions never trained on", _random(count, held_out=True, max_words=24)
    yield "Whisper's transcripts of real recordings", list(_spoken(WHISPER_HEARD))
    yield "sentences as people say them", list(_spoken(PEOPLE_SAY))
    yield "two-word class names", [_two_words(ExampleMaker(f"{SEED} two {at}")) for at in range(count)]
    yield "repeated words", [_repeated(ExampleMaker(f"{SEED} repeat {at}")) for at in range(count)]
    for words in (50, 100, 150, 200, 300):
        yield (
            f"transcripts of {words} words",
            [_long(ExampleMaker(f"{SEED} {words} {at}"), words) for at in range(count // 4)],
        )


def _random(count: int, *, held_out: bool, max_words: int) -> list[Example]:
    maker = ExampleMaker(f"{SEED} {held_out}", held_out=held_out, max_words=max_words)
    return [maker.example() for _ in range(count)]


def _spoken(transcripts: tuple[str, ...]) -> Iterator[Example]:
    """Each transcript with a picture and alone, under the questions that the clients ask by default."""
    for at, transcript in enumerate(transcripts):
        counts = SEEN[at % len(SEEN)]
        for seen, about, question in (
            (counts, "both", "What do you hear and see?"),
            (counts, "recording", "What was said?"),
            (counts, "picture", "What do you see?"),
            (None, "both", "What do you hear?"),
        ):
            answer = answer_for(transcript, seen, about)
            yield Example(transcript=transcript, counts=seen, question=question, answer=answer)


def _two_words(maker: ExampleMaker) -> Example:
    counts = tuple((label, maker.random.randint(1, 4)) for label in maker.random.sample(TWO_WORD_LABELS, 3))
    return Example(
        transcript=None, counts=counts, question="What do you see?", answer=answer_for(None, counts, "picture")
    )


def _repeated(maker: ExampleMaker) -> Example:
    words = [maker.random.choice(["the", "and", "of", "people", "buses"]) for _ in range(maker.random.randint(4, 12))]
    transcript = " ".join(words).capitalize() + "."
    counts = SEEN[maker.random.randrange(len(SEEN))]
    answer = answer_for(transcript, counts, "both")
    return Example(transcript=transcript, counts=counts, question="What do you hear and see?", answer=answer)


def _long(maker: ExampleMaker, words: int) -> Example:
    transcript = maker.transcript(words)
    counts = SEEN[maker.random.randrange(len(SEEN))]
    answer = answer_for(transcript, counts, "both")
    return Example(transcript=transcript, counts=counts, question="What do you hear and see?", answer=answer)


def measure(checkpoint: Path, count: int, failures: bool) -> None:
    tokenizer = PreTrainedTokenizerFast.from_pretrained(checkpoint)
    model = LlamaForCausalLM.from_pretrained(checkpoint, dtype=torch.float32)
    batches = Batches(tokenizer, PromptText(tokenizer), SEED)
    for name, examples in example_sets(count):
        encoded = [batches.encode(example) for example in examples]
        answers = wrong_answers(model, tokenizer, examples, encoded)
        right = len(examples) - len(answers)
        tokens = max(len(ids) for ids, _ in encoded)
        print(
            f"{right:4d} of {len(examples):4d}  {right / len(examples):6.1%}  {name} (up to {tokens} tokens)",
            flush=True,
        )
        for example, answer in answers if failures else ():
            print(f"        {example}\n        -> {answer}")


def wrong_answers(
    model: LlamaForCausalLM,
    tokenizer: PreTrainedTokenizerFast,
    examples: list[Example],
    encoded: list[tuple[list[int], int]],
) -> list[tuple[Example, str]]:
    """The examples answered wrongly, each with its answer."""
    likeliest = right_answers(model, encoded, tokenizer.pad_token_id)
    wrong = []
    for example, (ids, start), is_right in zip(examples, encoded, likeliest, strict=True):
        if not is_right:  # other tokens may still spell the same text
            answer = answer_of(model, tokenizer, ids[:start], most_tokens=len(ids) - start + 20)
            if answer != example.answer:
                wrong.append((example, answer))
    return wrong


def answer_of(model: Any, tokenizer: PreTrainedTokenizerFast, ids: list[int], most_tokens: int) -> str:
    """What the model answers."""
    prompt = torch.tensor([ids])
    with torch.no_grad():
        output = model.generate(
            prompt, attention_mask=torch.ones_like(prompt), max_new_tokens=most_tokens, do_sample=False
        )
    return str(tokenizer.decode(output[0, len(ids) :], skip_special_tokens=True))


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("checkpoint", type=Path, nargs="?", default=CHECKPOINT)
    parser.add_argument("--count", type=int, default=400, help="prompts in each random set")
    parser.add_argument("--failures", action="store_true", help="show what was answered wrongly")
    parser.add_argument("--threads", type=int, default=2)
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    measure(arguments.checkpoint, arguments.count, arguments.failures)


if __name__ == "__main__":
    main()
