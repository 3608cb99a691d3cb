"""A Llama of the size that people start with: 101 million parameters, made here, its weights random.

python -m benchmarks.peers.large FOLDER

Its words mean nothing, but a token costs it what it costs a model of that size: some 20 ms on a processor where the
small Llama takes 2.
"""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

SIZES = {"hidden_size": 768, "intermediate_size": 2048, "num_hidden_layers": 14, "num_attention_heads": 12}
TOKENIZER = ("tokenizer.json", "tokenizer_config.json", "chat_template.jinja", "generation_config.json")


def make(folder: Path, small: Path) -> None:
    """Writes the checkpoint; tokenizer and template are the small Llama's."""
    import torch
    from transformers import AutoConfig, LlamaConfig, LlamaForCausalLM

    torch.manual_seed(11)
    config = AutoConfig.from_pretrained(small)
    given = {**config.to_dict(), **SIZES, "num_key_value_heads": 12, "head_dim": 64, "dtype": "float32"}
    model = LlamaForCausalLM(LlamaConfig(**given)).float()
    model.save_pretrained(folder)
    for name in TOKENIZER:
        shutil.copyfile(small / name, folder / name)


if __name__ == "__main__":
    from benchmarks.peers.work.places import ROOT

    make(Path(sys.argv[1]), ROOT / "weights" / "llm" / "checkpoint")
