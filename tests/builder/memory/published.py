"""What some published models' `config.json` say (the values that matter), and what is known of their size.

`parameters`: as the safetensors index of the model's page counts them. `weight_gb`: bytes of its weights, in 10^9, as
stored. `kv_bytes`: of one token, on one GPU of `tensor_parallel`, in a 16-bit cache, worked out by hand from the
architecture: layers x heads x (keys + values) x 2 bytes; for MLA, layers x (latent + rope) x 2 bytes.
"""

from __future__ import annotations

from typing import Any

LLAMA_8B = {
    "architectures": ["LlamaForCausalLM"], "model_type": "llama", "torch_dtype": "bfloat16",
    "hidden_size": 4096, "intermediate_size": 14336, "num_hidden_layers": 32, "num_attention_heads": 32,
    "num_key_value_heads": 8, "vocab_size": 128256, "max_position_embeddings": 8192, "tie_word_embeddings": False,
}  # fmt: skip
QWEN_7B = {
    "architectures": ["Qwen2ForCausalLM"], "model_type": "qwen2", "torch_dtype": "bfloat16",
    "hidden_size": 3584, "intermediate_size": 18944, "num_hidden_layers": 28, "num_attention_heads": 28,
    "num_key_value_heads": 4, "vocab_size": 152064, "max_position_embeddings": 32768, "tie_word_embeddings": False,
    "sliding_window": 131072, "use_sliding_window": False, "max_window_layers": 28,
}  # fmt: skip
AWQ = {"quant_method": "awq", "bits": 4, "group_size": 128, "zero_point": True, "version": "gemm"}
GPTQ = {"quant_method": "gptq", "bits": 4, "group_size": 128, "desc_act": True}
FP8 = {
    "quant_method": "compressed-tensors",
    "config_groups": {"group_0": {"weights": {"num_bits": 8, "type": "float", "strategy": "tensor"}}},
}

PUBLISHED: dict[str, dict[str, Any]] = {
    "Llama-3-8B": {"config": LLAMA_8B, "parameters": 8_030_261_248, "weight_gb": 16.06, "kv_bytes": 131_072},
    "Llama-3-8B AWQ": {"config": {**LLAMA_8B, "quantization_config": AWQ}, "weight_gb": 5.73, "kv_bytes": 131_072},
    "Llama-3-8B GPTQ": {"config": {**LLAMA_8B, "quantization_config": GPTQ}, "weight_gb": 5.74, "kv_bytes": 131_072},
    "Llama-3-8B fp8": {"config": {**LLAMA_8B, "quantization_config": FP8}, "weight_gb": 9.08, "kv_bytes": 131_072},
    "Llama-3-70B, TP 4": {
        "config": {
            **LLAMA_8B, "hidden_size": 8192, "intermediate_size": 28672, "num_hidden_layers": 80,
            "num_attention_heads": 64,
        },
        "parameters": 70_553_706_496, "weight_gb": 141.107 / 4, "kv_bytes": 81_920, "tensor_parallel": 4,
    },
    "Llama-3.2-1B": {
        "config": {
            **LLAMA_8B, "hidden_size": 2048, "intermediate_size": 8192, "num_hidden_layers": 16, "head_dim": 64,
            "tie_word_embeddings": True,
        },
        "parameters": 1_235_814_400, "weight_gb": 2.47, "kv_bytes": 32_768,
    },
    "Mistral-7B-v0.1": {
        "config": {
            "architectures": ["MistralForCausalLM"], "model_type": "mistral", "torch_dtype": "bfloat16",
            "hidden_size": 4096, "intermediate_size": 14336, "num_hidden_layers": 32, "num_attention_heads": 32,
            "num_key_value_heads": 8, "vocab_size": 32000, "sliding_window": 4096, "tie_word_embeddings": False,
        },
        "parameters": 7_241_732_096, "weight_gb": 14.48, "kv_bytes": 131_072,
    },
    "Qwen2.5-7B": {"config": QWEN_7B, "parameters": 7_615_616_512, "weight_gb": 15.23, "kv_bytes": 57_344},
    "Qwen2.5-7B AWQ": {"config": {**QWEN_7B, "quantization_config": AWQ}, "weight_gb": 5.57, "kv_bytes": 57_344},
    "Qwen2.5-0.5B": {
        "config": {
            **QWEN_7B, "hidden_size": 896, "intermediate_size": 4864, "num_hidden_layers": 24,
            "num_attention_heads": 14, "num_key_value_heads": 2, "vocab_size": 151936, "tie_word_embeddings": True,
        },
        "parameters": 494_032_768, "weight_gb": 0.988, "kv_bytes": 12_288,
    },
    "Qwen3-8B": {
        "config": {
            "architectures": ["Qwen3ForCausalLM"], "model_type": "qwen3", "torch_dtype": "bfloat16",
            "hidden_size": 4096, "intermediate_size": 12288, "num_hidden_layers": 36, "num_attention_heads": 32,
            "num_key_value_heads": 8, "head_dim": 128, "vocab_size": 151936, "tie_word_embeddings": False,
            "attention_bias": False, "use_sliding_window": False,
        },
        "parameters": 8_190_735_360, "weight_gb": 16.38, "kv_bytes": 147_456,
    },
    "Qwen3-30B-A3B": {
        "config": {
            "architectures": ["Qwen3MoeForCausalLM"], "model_type": "qwen3_moe", "torch_dtype": "bfloat16",
            "hidden_size": 2048, "intermediate_size": 6144, "moe_intermediate_size": 768, "num_hidden_layers": 48,
            "num_attention_heads": 32, "num_key_value_heads": 4, "head_dim": 128, "vocab_size": 151936,
            "num_experts": 128, "num_experts_per_tok": 8, "decoder_sparse_step": 1, "mlp_only_layers": [],
            "tie_word_embeddings": False,
        },
        "parameters": 30_532_122_624, "weight_gb": 61.06, "kv_bytes": 98_304,
    },
    "Mixtral-8x7B": {
        "config": {
            "architectures": ["MixtralForCausalLM"], "model_type": "mixtral", "torch_dtype": "bfloat16",
            "hidden_size": 4096, "intermediate_size": 14336, "num_hidden_layers": 32, "num_attention_heads": 32,
            "num_key_value_heads": 8, "vocab_size": 32000, "num_local_experts": 8, "num_experts_per_tok": 2,
            "tie_word_embeddings": False, "sliding_window": None,
        },
        "parameters": 46_702_792_704, "weight_gb": 93.41, "kv_bytes": 131_072,
    },
    "DeepSeek-V2-Lite": {
        "config": {
            "architectures": ["DeepseekV2ForCausalLM"], "model_type": "deepseek_v2", "torch_dtype": "bfloat16",
            "hidden_size": 2048, "intermediate_size": 10944, "moe_intermediate_size": 1408, "num_hidden_layers": 27,
            "num_attention_heads": 16, "num_key_value_heads": 16, "vocab_size": 102400, "n_routed_experts": 64,
            "n_shared_experts": 2, "num_experts_per_tok": 6, "first_k_dense_replace": 1, "moe_layer_freq": 1,
            "kv_lora_rank": 512, "q_lora_rank": None, "qk_nope_head_dim": 128, "qk_rope_head_dim": 64,
            "v_head_dim": 128, "tie_word_embeddings": False,
        },
        "parameters": 15_706_484_224, "weight_gb": 31.41, "kv_bytes": 31_104,
    },
    "Gemma-2-9B": {
        "config": {
            "architectures": ["Gemma2ForCausalLM"], "model_type": "gemma2", "torch_dtype": "bfloat16",
            "hidden_size": 3584, "intermediate_size": 14336, "num_hidden_layers": 42, "num_attention_heads": 16,
            "num_key_value_heads": 8, "head_dim": 256, "vocab_size": 256000, "sliding_window": 4096,
        },
        "parameters": 9_241_705_984, "weight_gb": 18.48, "kv_bytes": 344_064,
    },
    "Gemma-3-270M": {
        "config": {
            "architectures": ["Gemma3ForCausalLM"], "model_type": "gemma3_text", "torch_dtype": "bfloat16",
            "hidden_size": 640, "intermediate_size": 2048, "num_hidden_layers": 18, "num_attention_heads": 4,
            "num_key_value_heads": 1, "head_dim": 256, "vocab_size": 262144, "sliding_window": 512,
        },
        "parameters": 268_098_176, "weight_gb": 0.536, "kv_bytes": 18_432,
    },
    "OPT-125M": {
        "config": {
            "architectures": ["OPTForCausalLM"], "model_type": "opt", "torch_dtype": "float16", "hidden_size": 768,
            "ffn_dim": 3072, "num_hidden_layers": 12, "num_attention_heads": 12, "vocab_size": 50272,
            "max_position_embeddings": 2048, "word_embed_proj_dim": 768,
        },
        "parameters": 125_239_296, "weight_gb": 0.2505, "kv_bytes": 36_864,
    },
}  # fmt: skip
