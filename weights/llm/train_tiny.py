"""Train the small Llama that answers in demo and tests, from nothing, on prompts of the assistant pipeline.

    python -m weights.llm.train_tiny --out RUN                      # half an hour of two idle cores; writes RUN/best
    python -m weights.llm.train_tiny --out MORE --resume RUN/best --stretch 2   # goes on; longer
    python -m weights.llm.measure MORE/best                         # what it can do
    python -m weights.llm.train_tiny --keep MORE/best               # into checkpoint/, which is committed

Everything random comes from one seed. The prompts are those that the served pipeline makes: the prompt step's own
template renders the chat messages, the checkpoint's own chat template renders them to text.
"""

import argparse
import importlib.util
import json
import time
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import torch
from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers, processors, trainers
from transformers import GenerationConfig, LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

from weights.llm.tiny_prompts import LABELS, Example, ExampleMaker, plural, vocabulary

SEED = 20251
VOCABULARY_SIZE = 2048
CONTEXT = 2048
HERE = Path(__file__).parent
PROMPT_FOLDER = HERE.parents[1] / "model_repository" / "prompt" / "1"

# (until this fraction of the steps, at most this many words in a transcript, tokens in a batch)
CURRICULUM = ((0.25, 10, 3000), (0.55, 24, 5000), (0.80, 48, 6000), (1.0, 150, 8000))
CURRICULUM_GOING_ON = ((0.40, 32, 4000), (1.0, 120, 4500))


def served_prompt() -> ModuleType:
    """The prompt step's module, as served."""
    spec = importlib.util.spec_from_file_location("prompt_messages", PROMPT_FOLDER / "prompt_messages.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


class PromptText:
    """From examples to the text that the engine is given."""

    def __init__(self, tokenizer: PreTrainedTokenizerFast) -> None:
        self.served = served_prompt()
        self.template = self.served.load_template(PROMPT_FOLDER / "template.jinja")
        self.tokenizer = tokenizer

    def messages(self, example: Example) -> list[dict[str, str]]:
        if example.bare:
            return [{"role": "user", "content": example.question}]
        values = {"transcript": example.transcript, "counts": example.counts, "question": example.question}
        return self.served.render_messages(self.template, values)

    def prompt(self, example: Example) -> str:
        text = self.tokenizer.apply_chat_template(self.messages(example), tokenize=False, add_generation_prompt=True)
        return str(text)


def train_tokenizer() -> PreTrainedTokenizerFast:
    """Byte-level BPE; digits and quotes always stand alone, so that a copy has the same tokens as its original."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex('"'), "isolated"),
            pre_tokenizers.Digits(individual_digits=True),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=True),
        ]
    )
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=VOCABULARY_SIZE,
        special_tokens=["<s>", "</s>", "<pad>"],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator(vocabulary_text(), trainer)
    tokenizer.post_processor = processors.TemplateProcessing(single="<s> $A", special_tokens=[("<s>", 0)])
    fast = PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        bos_token="<s>",
        eos_token="</s>",
        pad_token="<pad>",
        model_max_length=CONTEXT,
        clean_up_tokenization_spaces=False,
    )
    fast.chat_template = (HERE / "chat_template.jinja").read_text(encoding="utf-8")
    return fast


def vocabulary_text() -> Iterator[str]:
    """Text for the tokenizer's merges: transcripts, questions and answers as trained, class names and their plurals."""
    maker = ExampleMaker(f"{SEED} vocabulary", max_words=48)
    for _ in range(20000):
        example = maker.example()
        yield f"{example.transcript or ''} {example.question} {example.answer}"
    for label in LABELS * 40:
        yield f" {label}, {plural(label)} "
    for word in vocabulary(False)[:6000]:
        yield f" {word} {word.capitalize()}"


class Batches:
    """Batches of nearly equal length, up to a number of tokens each."""

    def __init__(self, tokenizer: PreTrainedTokenizerFast, text: PromptText, seed: str) -> None:
        self.tokenizer, self.text, self.seed = tokenizer, text, seed
        self.pool: list[list[tuple[list[int], int]]] = []
        self.rounds = 0

    def encode(self, example: Example) -> tuple[list[int], int]:
        """Token ids of prompt, answer and end; where the answer starts."""
        prompt = self.tokenizer.encode(self.text.prompt(example), add_special_tokens=False)
        answer = self.tokenizer.encode(example.answer, add_special_tokens=False)
        return prompt + answer + [self.tokenizer.eos_token_id], len(prompt)

    def next(self, max_words: int, max_tokens: int) -> list[tuple[list[int], int]]:
        if not self.pool:
            self.rounds += 1
            maker = ExampleMaker(f"{self.seed} {self.rounds}", max_words=max_words)
            encoded = sorted((self.encode(maker.example()) for _ in range(512)), key=lambda pair: len(pair[0]))
            while encoded:
                size = max(1, max_tokens // len(encoded[-1][0]))
                self.pool.append(encoded[-size:])
                del encoded[-size:]
            maker.random.shuffle(self.pool)
        return self.pool.pop()


def tensors_of(batch: list[tuple[list[int], int]], pad: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Ids int64 [batch, tokens], padded at the end; and which positions predict a token of the answer, bool."""
    length = max(len(ids) for ids, _ in batch)
    ids = torch.full((len(batch), length), pad)
    predicts = torch.zeros((len(batch), length), dtype=torch.bool)
    for row, (tokens, start) in enumerate(batch):
        ids[row, : len(tokens)] = torch.tensor(tokens)
        predicts[row, start - 1 : len(tokens) - 1] = True
    return ids, predicts


def answer_logits(model: LlamaForCausalLM, ids: torch.Tensor, predicts: torch.Tensor) -> torch.Tensor:
    """Logits float32 [answer tokens, vocabulary]. Padding lies behind everything it could disturb: no mask needed."""
    hidden = model.model(input_ids=ids, use_cache=False).last_hidden_state
    return model.lm_head(hidden[predicts])


@torch.no_grad()
def right_answers(model: LlamaForCausalLM, encoded: list[tuple[list[int], int]], pad: int) -> list[bool]:
    """For each prompt, whether greedy decoding gives the right answer in every token.

    It does exactly when each token of the right answer is the likeliest after those before it: one pass tells.
    """
    model.eval()
    right = [False] * len(encoded)
    order = sorted(range(len(encoded)), key=lambda at: len(encoded[at][0]))
    for start in range(0, len(order), 20):
        rows = order[start : start + 20]
        ids, predicts = tensors_of([encoded[at] for at in rows], pad)
        wrong = torch.zeros_like(predicts)
        wrong[predicts] = answer_logits(model, ids, predicts).argmax(-1) != ids.roll(-1, 1)[predicts]
        for at, is_wrong in zip(rows, wrong.any(1).tolist(), strict=True):
            right[at] = not is_wrong
    model.train()
    return right


def new_model(tokenizer: PreTrainedTokenizerFast) -> LlamaForCausalLM:
    torch.manual_seed(SEED)
    return LlamaForCausalLM(
        LlamaConfig(
            vocab_size=VOCABULARY_SIZE,
            hidden_size=128,
            intermediate_size=384,
            num_hidden_layers=4,
            num_attention_heads=4,
            num_key_value_heads=4,
            head_dim=32,
            max_position_embeddings=CONTEXT,
            tie_word_embeddings=True,
            bos_token_id=tokenizer.bos_token_id,
            eos_token_id=tokenizer.eos_token_id,
            pad_token_id=tokenizer.pad_token_id,
            initializer_range=0.04,
        )
    )


def optimizers_for(model: LlamaForCausalLM) -> list[torch.optim.Optimizer]:
    matrices = [weight for name, weight in model.named_parameters() if weight.ndim == 2 and "embed" not in name]
    others = [weight for name, weight in model.named_parameters() if weight.ndim != 2 or "embed" in name]
    return [
        torch.optim.Muon(matrices, lr=3e-3, weight_decay=0.02, adjust_lr_fn="match_rms_adamw"),
        torch.optim.AdamW(others, lr=3e-3, weight_decay=0.0, betas=(0.9, 0.98)),
    ]


def learning_rate_factor(done: float, falling: float) -> float:
    """Rise over the first 2 % of the steps, stay, fall linearly to 2 % over the last part `falling` of them."""
    return min(1.0, done / 0.02 + 0.05, max(0.02, (1 - done) / falling))


def train(out: Path, steps: int, threads: int, resume: Path | None, stretch: int) -> None:
    """Train from nothing or from a checkpoint; writes `out`/last every 200 steps, and `out`/best."""
    torch.set_num_threads(threads)
    tokenizer = train_tokenizer() if resume is None else PreTrainedTokenizerFast.from_pretrained(resume)
    model = new_model(tokenizer) if resume is None else LlamaForCausalLM.from_pretrained(resume, dtype=torch.float32)
    curriculum, falling = (CURRICULUM, 0.5) if resume is None else (CURRICULUM_GOING_ON, 0.9)
    batches = Batches(tokenizer, PromptText(tokenizer), f"{SEED} train, stretch {stretch}")
    held_out = ExampleMaker(f"{SEED} held out while training", held_out=True, max_words=24)
    check = [batches.encode(held_out.example()) for _ in range(200)]
    optimizers = optimizers_for(model)
    rates = [group["lr"] for optimizer in optimizers for group in optimizer.param_groups]
    best, started = 0.0, time.monotonic()
    for step in range(1, steps + 1):
        done = step / steps
        _, max_words, max_tokens = next(stage for stage in curriculum if done <= stage[0])
        set_learning_rates(optimizers, [rate * learning_rate_factor(done, falling) for rate in rates])
        loss = train_step(model, optimizers, *tensors_of(batches.next(max_words, max_tokens), tokenizer.pad_token_id))
        if step % 20 == 0:
            seconds = time.monotonic() - started
            print(f"step {step} words<={max_words} loss {loss:.4f} {seconds:.0f} s", flush=True)
        if step % 200 == 0 or step == steps:
            share = sum(right_answers(model, check, tokenizer.pad_token_id)) / len(check)
            print(f"step {step} held-out exact {share:.3f}", flush=True)
            save(model, tokenizer, out / "last")
            if share >= best:
                best = share
                save(model, tokenizer, out / "best")


def set_learning_rates(optimizers: list[torch.optim.Optimizer], rates: list[float]) -> None:
    groups = [group for optimizer in optimizers for group in optimizer.param_groups]
    for group, rate in zip(groups, rates, strict=True):
        group["lr"] = rate


def train_step(
    model: LlamaForCausalLM, optimizers: list[torch.optim.Optimizer], ids: torch.Tensor, predicts: torch.Tensor
) -> float:
    """One step on one batch; its loss over the answers' tokens."""
    loss = torch.nn.functional.cross_entropy(answer_logits(model, ids, predicts), ids.roll(-1, 1)[predicts])
    for optimizer in optimizers:
        optimizer.zero_grad(set_to_none=True)
    loss.backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    for optimizer in optimizers:
        optimizer.step()
    return loss.item()


def save(model: LlamaForCausalLM, tokenizer: PreTrainedTokenizerFast, out: Path) -> None:
    """The checkpoint in Hugging Face's layout, answering greedily by default."""
    out.mkdir(parents=True, exist_ok=True)
    model.generation_config = GenerationConfig()  # transformers would refuse to save what is written below
    model.save_pretrained(out)
    tokenizer.save_pretrained(out)
    generation = {name: getattr(model.config, name) for name in ("bos_token_id", "eos_token_id", "pad_token_id")}
    (out / "generation_config.json").write_text(json.dumps({**generation, "temperature": 0.0}, indent=2) + "\n")


def keep(run: Path, checkpoint: Path) -> None:
    """Write the checkpoint of a run into the committed folder, in float16; the model card there stays."""
    tokenizer = PreTrainedTokenizerFast.from_pretrained(run)
    save(LlamaForCausalLM.from_pretrained(run, dtype=torch.float16), tokenizer, checkpoint)
    (checkpoint / "model.safetensors").chmod(0o644)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--out", type=Path, help="folder for the checkpoints `last` and `best`")
    parser.add_argument("--steps", type=int, default=3000)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--resume", type=Path, help="go on from this checkpoint, with fresh data")
    parser.add_argument(
        "--stretch", type=int, default=1, help="which stretch of the endless data; another when resuming"
    )
    parser.add_argument("--keep", type=Path, help="commit this checkpoint instead of training")
    arguments = parser.parse_args()
    if arguments.keep is not None:
        keep(arguments.keep, HERE / "checkpoint")
    elif arguments.out is None:
        parser.error("--out is needed to train")
    else:
        train(arguments.out, arguments.steps, arguments.threads, arguments.resume, arguments.stretch)


if __name__ == "__main__":
    main()
