"""Configs of the decoders that follow Llama, as they were published."""

from __future__ import annotations

from typing import Any

Data = dict[str, Any]

LLAMA = {
    "architectures": ["LlamaForCausalLM"], "model_type": "llama", "bos_token_id": 1, "eos_token_id": 2,
    "hidden_act": "silu", "hidden_size": 4096, "initializer_range": 0.02, "intermediate_size": 11008,
    "max_sequence_length": 2048, "num_attention_heads": 32, "num_hidden_layers": 32, "pad_token_id": 0,
    "rms_norm_eps": 1e-06, "tie_word_embeddings": False, "torch_dtype": "float16",
    "transformers_version": "4.28.0.dev0", "use_cache": True, "vocab_size": 32000,
}  # fmt: skip
LLAMA_2 = {
    "_name_or_path": "meta-llama/Llama-2-7b-hf", "architectures": ["LlamaForCausalLM"], "model_type": "llama",
    "bos_token_id": 1, "eos_token_id": 2, "hidden_act": "silu", "hidden_size": 4096, "initializer_range": 0.02,
    "intermediate_size": 11008, "max_position_embeddings": 4096, "num_attention_heads": 32,
    "num_hidden_layers": 32, "num_key_value_heads": 32, "pretraining_tp": 1, "rms_norm_eps": 1e-05,
    "rope_scaling": None, "tie_word_embeddings": False, "torch_dtype": "float16",
    "transformers_version": "4.31.0.dev0", "use_cache": True, "vocab_size": 32000,
}  # fmt: skip
LLAMA_3 = {
    **LLAMA_2, "attention_bias": False, "attention_dropout": 0.0, "bos_token_id": 128000, "eos_token_id": 128001,
    "intermediate_size": 14336, "max_position_embeddings": 8192, "num_key_value_heads": 8, "rope_theta": 500000.0,
    "torch_dtype": "bfloat16", "vocab_size": 128256,
}  # fmt: skip
LLAMA_3_1: Data = {
    **LLAMA_3, "eos_token_id": [128001, 128008, 128009], "max_position_embeddings": 131072, "mlp_bias": False,
    "rope_scaling": {"factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
                     "original_max_position_embeddings": 8192, "rope_type": "llama3"},
}  # fmt: skip
SMOLLM2 = {
    **LLAMA_2, "attention_bias": False, "attention_dropout": 0.0, "bos_token_id": 0, "eos_token_id": 0,
    "hidden_size": 576, "initializer_range": 0.041666666666666664, "intermediate_size": 1536, "is_llama_config": True, "max_position_embeddings": 8192,
    "mlp_bias": False, "num_attention_heads": 9, "num_hidden_layers": 30, "num_key_value_heads": 3,
    "rope_interleaved": False, "rope_theta": 100000, "tie_word_embeddings": True, "vocab_size": 49152,
}  # fmt: skip
MISTRAL = {
    "architectures": ["MistralForCausalLM"], "model_type": "mistral", "bos_token_id": 1, "eos_token_id": 2,
    "hidden_act": "silu", "hidden_size": 4096, "initializer_range": 0.02, "intermediate_size": 14336,
    "max_position_embeddings": 32768, "num_attention_heads": 32, "num_hidden_layers": 32, "num_key_value_heads": 8,
    "rms_norm_eps": 1e-05, "rope_theta": 10000.0, "sliding_window": 4096, "tie_word_embeddings": False,
    "torch_dtype": "bfloat16", "transformers_version": "4.34.0.dev0", "use_cache": True, "vocab_size": 32000,
}  # fmt: skip
QWEN2 = {
    "architectures": ["Qwen2ForCausalLM"], "model_type": "qwen2", "attention_dropout": 0.0, "bos_token_id": 151643,
    "eos_token_id": 151643, "hidden_act": "silu", "hidden_size": 896, "initializer_range": 0.02,
    "intermediate_size": 4864, "max_position_embeddings": 131072, "max_window_layers": 24,
    "num_attention_heads": 14, "num_hidden_layers": 24, "num_key_value_heads": 2, "rms_norm_eps": 1e-06,
    "rope_theta": 1000000.0, "sliding_window": 131072, "tie_word_embeddings": True, "torch_dtype": "bfloat16",
    "transformers_version": "4.40.1", "use_cache": True, "use_sliding_window": False, "vocab_size": 151936,
}  # fmt: skip
QWEN3 = {
    **QWEN2, "architectures": ["Qwen3ForCausalLM"], "model_type": "qwen3", "attention_bias": False, "head_dim": 128,
    "hidden_size": 1024, "intermediate_size": 3072, "max_position_embeddings": 40960, "max_window_layers": 28,
    "num_attention_heads": 16, "num_hidden_layers": 28, "num_key_value_heads": 8, "rope_scaling": None,
    "rope_theta": 1000000, "sliding_window": None,
}  # fmt: skip
PHI_3 = {
    "_name_or_path": "Phi-3-mini-4k-instruct", "architectures": ["Phi3ForCausalLM"], "model_type": "phi3",
    "attention_bias": False, "attention_dropout": 0.0, "auto_map": {"AutoConfig": "configuration_phi3.Phi3Config"},
    "bos_token_id": 1, "embd_pdrop": 0.0, "eos_token_id": 32000, "hidden_act": "silu", "hidden_size": 3072,
    "initializer_range": 0.02, "intermediate_size": 8192, "max_position_embeddings": 4096,
    "num_attention_heads": 32, "num_hidden_layers": 32, "num_key_value_heads": 32,
    "original_max_position_embeddings": 4096, "pad_token_id": 32000, "resid_pdrop": 0.0, "rms_norm_eps": 1e-05,
    "rope_scaling": None, "rope_theta": 10000.0, "sliding_window": 2047, "tie_word_embeddings": False,
    "torch_dtype": "bfloat16", "transformers_version": "4.40.2", "use_cache": True, "vocab_size": 32064,
}  # fmt: skip
SHORT = [
    1.0, 1.0199999809265137, 1.0299999713897705, 1.0299999713897705, 1.0499999523162842, 1.0499999523162842,
    1.0499999523162842, 1.0499999523162842, 1.0499999523162842, 1.0699999332427979, 1.0999999046325684,
    1.1099998950958252, 1.1599998474121094, 1.1599998474121094, 1.1699998378753662, 1.2899998426437378,
    1.339999794960022, 1.679999828338623, 1.7899998426437378, 1.8199998140335083, 1.8499997854232788,
    1.8799997568130493, 1.9099997282028198, 1.9399996995925903, 1.9899996519088745, 2.0199997425079346,
    2.0199997425079346, 2.0199997425079346, 2.0199997425079346, 2.0199997425079346, 2.0199997425079346,
    2.0299997329711914, 2.0299997329711914, 2.0299997329711914, 2.0299997329711914, 2.0299997329711914,
    2.0299997329711914, 2.0299997329711914, 2.0299997329711914, 2.0299997329711914, 2.0799996852874756,
    2.0899996757507324, 2.189999580383301, 2.2199995517730713, 2.5899994373321533, 2.729999542236328,
    2.749999523162842, 2.8399994373321533
]  # fmt: skip
LONG = [
    1.0800000429153442, 1.1100000143051147, 1.1399999856948853, 1.340000033378601, 1.5899999141693115,
    1.600000023841858, 1.6200000047683716, 2.620000123977661, 3.2300000190734863, 3.2300000190734863,
    4.789999961853027, 7.400000095367432, 7.700000286102295, 9.09000015258789, 12.199999809265137,
    17.670000076293945, 24.46000099182129, 28.57000160217285, 30.420001983642578, 30.840002059936523,
    32.590003967285156, 32.93000411987305, 42.320003509521484, 44.96000289916992, 50.340003967285156,
    50.45000457763672, 57.55000305175781, 57.93000411987305, 58.21000289916992, 60.1400032043457,
    62.61000442504883, 62.62000274658203, 62.71000289916992, 63.1400032043457, 63.1400032043457,
    63.77000427246094, 63.93000411987305, 63.96000289916992, 63.970001220703125, 64.02999877929688,
    64.06999969482422, 64.08000183105469, 64.12000274658203, 64.41000366210938, 64.4800033569336,
    64.51000213623047, 64.52999877929688, 64.83999633789062
]  # fmt: skip
PHI_3_5 = {
    **PHI_3, "_name_or_path": "Phi-3.5-mini-instruct", "max_position_embeddings": 131072, "sliding_window": 262144,
    "rope_scaling": {"long_factor": LONG, "short_factor": SHORT, "type": "longrope"},
}  # fmt: skip
OLMO = {
    "architectures": ["OlmoForCausalLM"], "model_type": "olmo", "attention_bias": False, "attention_dropout": 0.0,
    "clip_qkv": None, "eos_token_id": 50279, "hidden_act": "silu", "hidden_size": 2048, "initializer_range": 0.02,
    "intermediate_size": 8192, "max_position_embeddings": 2048, "num_attention_heads": 16, "num_hidden_layers": 16,
    "num_key_value_heads": 16, "pad_token_id": 1, "rope_scaling": None, "rope_theta": 10000.0,
    "tie_word_embeddings": True, "torch_dtype": "float32", "transformers_version": "4.40.0", "use_cache": True,
    "vocab_size": 50304,
}  # fmt: skip
OLMO_2 = {
    "architectures": ["Olmo2ForCausalLM"], "model_type": "olmo2", "attention_bias": False, "attention_dropout": 0.0,
    "eos_token_id": 100257, "hidden_act": "silu", "hidden_size": 4096, "initializer_range": 0.02,
    "intermediate_size": 11008, "max_position_embeddings": 4096, "num_attention_heads": 32,
    "num_hidden_layers": 32, "num_key_value_heads": 32, "pad_token_id": 100277, "rms_norm_eps": 1e-06,
    "rope_scaling": None, "rope_theta": 500000, "tie_word_embeddings": False, "torch_dtype": "float32",
    "transformers_version": "4.47.0", "use_cache": True, "vocab_size": 100352,
}  # fmt: skip
SMOLLM3 = {
    "architectures": ["SmolLM3ForCausalLM"], "model_type": "smollm3", "attention_bias": False,
    "attention_dropout": 0.0, "bos_token_id": 128000, "eos_token_id": 128012, "hidden_act": "silu",
    "hidden_size": 2048, "initializer_range": 0.02, "intermediate_size": 11008,
    "layer_types": ["full_attention"] * 36, "max_position_embeddings": 65536, "max_window_layers": 28,
    "mlp_bias": False, "no_rope_layer_interval": 4, "no_rope_layers": [1, 1, 1, 0] * 9, "num_attention_heads": 16,
    "num_hidden_layers": 36, "num_key_value_heads": 4, "pad_token_id": 128004, "pretraining_tp": 2,
    "rms_norm_eps": 1e-06, "rope_scaling": None, "rope_theta": 5000000.0, "sliding_window": None,
    "torch_dtype": "bfloat16", "transformers_version": "4.54.0.dev0", "use_cache": False,
    "use_sliding_window": False, "vocab_size": 128256,
}  # fmt: skip

LLAMAS: dict[str, Data] = {
    "llama-7b": LLAMA,
    "llama-65b": {
        **LLAMA, "hidden_size": 8192, "intermediate_size": 22016, "num_attention_heads": 64, "num_hidden_layers": 80
    },
    "llama-2-7b": LLAMA_2,
    "llama-2-70b": {
        **LLAMA_2, "hidden_size": 8192, "intermediate_size": 28672, "num_attention_heads": 64,
        "num_hidden_layers": 80, "num_key_value_heads": 8,
    },
    "llama-3-8b": LLAMA_3, "llama-3.1-8b": LLAMA_3_1,
    "llama-3.1-405b": {
        **LLAMA_3_1, "hidden_size": 16384, "intermediate_size": 53248, "num_attention_heads": 128,
        "num_hidden_layers": 126,
    },
    "llama-3.2-3b": {
        **LLAMA_3_1, "head_dim": 128, "hidden_size": 3072, "intermediate_size": 8192, "num_attention_heads": 24,
        "num_hidden_layers": 28, "rope_scaling": {**LLAMA_3_1["rope_scaling"], "factor": 32.0},
        "tie_word_embeddings": True,
    },
    "tinyllama-1.1b": {
        **LLAMA_2, "hidden_size": 2048, "intermediate_size": 5632, "max_position_embeddings": 2048,
        "num_hidden_layers": 22, "num_key_value_heads": 4,
    },
    "smollm2-135m": SMOLLM2,
    "smollm2-1.7b": {
        **SMOLLM2, "hidden_size": 2048, "initializer_range": 0.02, "intermediate_size": 8192, "num_attention_heads": 32,
        "num_hidden_layers": 24, "num_key_value_heads": 32, "rope_theta": 130000,
    },
    "smollm3-3b": SMOLLM3,
    "yi-6b": {**LLAMA_2, "num_key_value_heads": 4, "rope_theta": 5000000.0, "vocab_size": 64000, "pad_token_id": 0},
    "codellama-13b": {
        **LLAMA_2, "hidden_size": 5120, "intermediate_size": 13824, "max_position_embeddings": 16384,
        "num_attention_heads": 40, "num_hidden_layers": 40, "num_key_value_heads": 40, "rope_theta": 1000000,
        "vocab_size": 32016,
    },
    "deepseek-coder-1.3b": {
        **LLAMA_2, "hidden_size": 2048, "intermediate_size": 5504, "max_position_embeddings": 16384,
        "num_attention_heads": 16, "num_hidden_layers": 24, "num_key_value_heads": 16, "rms_norm_eps": 1e-06,
        "rope_scaling": {"factor": 4.0, "type": "linear"}, "rope_theta": 100000, "vocab_size": 32256,
    },
    "mistral-7b": MISTRAL,
    "mistral-7b-v0.3": {
        **MISTRAL, "attention_dropout": 0.0, "rope_theta": 1000000.0, "sliding_window": None, "vocab_size": 32768
    },
    "mistral-nemo-12b": {
        **MISTRAL, "head_dim": 128, "hidden_size": 5120, "max_position_embeddings": 131072, "num_hidden_layers": 40,
        "rope_theta": 1000000.0, "sliding_window": None, "vocab_size": 131072,
    },
    "qwen2-0.5b": QWEN2,
    "qwen2.5-0.5b": {**QWEN2, "max_position_embeddings": 32768, "sliding_window": 32768, "use_mrope": False},
    "qwen2.5-14b": {
        **QWEN2, "hidden_size": 5120, "intermediate_size": 13824, "max_window_layers": 48,
        "num_attention_heads": 40, "num_hidden_layers": 48, "num_key_value_heads": 8, "rms_norm_eps": 1e-05,
        "tie_word_embeddings": False, "vocab_size": 152064,
    },
    "qwen3-0.6b": QWEN3,
    "qwen3-32b": {
        **QWEN3, "hidden_size": 5120, "intermediate_size": 25600, "max_window_layers": 64, "num_attention_heads": 64,
        "num_hidden_layers": 64, "tie_word_embeddings": False,
    },
    "phi-3-mini": PHI_3, "phi-3.5-mini": PHI_3_5,
    "phi-4": {
        **{key: value for key, value in PHI_3.items() if key != "auto_map"}, "bos_token_id": 100257,
        "eos_token_id": 100265, "hidden_size": 5120, "intermediate_size": 17920, "max_position_embeddings": 16384,
        "num_attention_heads": 40, "num_hidden_layers": 40, "num_key_value_heads": 10,
        "original_max_position_embeddings": 16384, "pad_token_id": 100349, "rope_theta": 250000,
        "sliding_window": None, "vocab_size": 100352,
    },
    "olmo-1b": OLMO,
    "olmo-7b": {
        **OLMO, "hidden_size": 4096, "intermediate_size": 11008, "num_attention_heads": 32, "num_hidden_layers": 32,
        "num_key_value_heads": 32, "tie_word_embeddings": False,
    },
    "olmo2-7b": OLMO_2,
    "olmo2-13b": {
        **OLMO_2, "hidden_size": 5120, "intermediate_size": 13824, "num_attention_heads": 40,
        "num_hidden_layers": 40, "num_key_value_heads": 40,
    },
}  # fmt: skip
