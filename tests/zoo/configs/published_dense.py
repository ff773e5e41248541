"""Configs of dense decoders from 2022 on, as they were published."""

from __future__ import annotations

from typing import Any

STARCODER2 = {
    "architectures": ["Starcoder2ForCausalLM"], "attention_dropout": 0.1, "bos_token_id": 0,
    "embedding_dropout": 0.1, "eos_token_id": 0, "hidden_act": "gelu_pytorch_tanh", "hidden_size": 3072,
    "initializer_range": 0.018042, "intermediate_size": 12288, "layer_norm_epsilon": 1e-05,
    "max_position_embeddings": 16384, "mlp_type": "default", "model_type": "starcoder2", "norm_epsilon": 1e-05,
    "norm_type": "layer_norm", "num_attention_heads": 24, "num_hidden_layers": 30, "num_key_value_heads": 2,
    "residual_dropout": 0.1, "rope_theta": 999999.4420358813, "sliding_window": 4096,
    "transformers_version": "4.37.0.dev0", "use_bias": True, "use_cache": True, "vocab_size": 49152,
}  # fmt: skip
EXAONE4 = {
    "architectures": ["Exaone4ForCausalLM"], "attention_dropout": 0.0, "bos_token_id": 1, "eos_token_id": 361,
    "head_dim": 128, "hidden_act": "silu", "hidden_size": 5120, "initializer_range": 0.02,
    "intermediate_size": 27392, "layer_types": [*["sliding_attention"] * 3, "full_attention"] * 16,
    "max_position_embeddings": 131072, "model_type": "exaone4", "num_attention_heads": 40,
    "num_hidden_layers": 64, "num_key_value_heads": 8, "pad_token_id": 0, "rms_norm_eps": 1e-05,
    "rope_scaling": {
        "factor": 16.0, "high_freq_factor": 4.0, "low_freq_factor": 1.0,
        "original_max_position_embeddings": 8192, "rope_type": "llama3",
    },
    "rope_theta": 1000000, "sliding_window": 4096, "sliding_window_pattern": "LLLG",
    "tie_word_embeddings": False, "torch_dtype": "bfloat16", "transformers_version": "4.54.0.dev0",
    "use_cache": True, "vocab_size": 102400,
}  # fmt: skip

XGLM = {
    "activation_dropout": 0, "activation_function": "gelu", "architectures": ["XGLMForCausalLM"],
    "attention_dropout": 0.1, "attention_heads": 16, "bos_token_id": 0, "d_model": 1024,
    "decoder_start_token_id": 2, "dropout": 0.1, "eos_token_id": 2, "ffn_dim": 4096, "init_std": 0.02,
    "layerdrop": 0.0, "max_position_embeddings": 2048, "model_type": "xglm", "num_layers": 24, "pad_token_id": 1,
    "scale_embedding": True, "transformers_version": "4.16.0.dev0", "use_cache": True, "vocab_size": 256008,
}  # fmt: skip
APERTUS = {
    "architectures": ["ApertusForCausalLM"], "attention_bias": False, "attention_dropout": 0.0, "bos_token_id": 1,
    "eos_token_id": 2, "hidden_act": "xielu", "hidden_dropout": 0.0, "hidden_size": 4096,
    "initializer_range": 0.02, "intermediate_size": 21504, "max_position_embeddings": 65536, "mlp_bias": False,
    "model_type": "apertus", "num_attention_heads": 32, "num_hidden_layers": 32, "num_key_value_heads": 8,
    "pad_token_id": 3, "post_norm": False, "qk_norm": True, "rms_norm_eps": 1e-05,
    "rope_scaling": {
        "factor": 8.0, "high_freq_factor": 4.0, "low_freq_factor": 1.0,
        "original_max_position_embeddings": 8192, "rope_type": "llama3", "type": "llama3",
    },
    "rope_theta": 12000000, "tie_word_embeddings": False, "torch_dtype": "bfloat16",
    "transformers_version": "4.56.0.dev0", "use_cache": True, "vocab_size": 131072,
}  # fmt: skip
ETTIN = {
    "architectures": ["ModernBertDecoderForCausalLM"], "attention_bias": False, "attention_dropout": 0.0,
    "bos_token_id": 50281, "classifier_activation": "gelu", "classifier_bias": False, "classifier_dropout": 0.0,
    "cls_token_id": 50281, "decoder_bias": True, "embedding_dropout": 0.0, "eos_token_id": 50282,
    "global_attn_every_n_layers": 3, "global_rope_theta": 160000.0, "hidden_activation": "gelu",
    "hidden_size": 768, "initializer_cutoff_factor": 2.0, "initializer_range": 0.02, "intermediate_size": 1152,
    "local_attention": 128, "local_rope_theta": 160000.0, "max_position_embeddings": 7999, "mlp_bias": False,
    "mlp_dropout": 0.0, "model_type": "modernbert-decoder", "norm_bias": False, "norm_eps": 1e-05,
    "num_attention_heads": 12, "num_hidden_layers": 22, "pad_token_id": 50283, "sep_token_id": 50282,
    "tie_word_embeddings": True, "torch_dtype": "float32", "vocab_size": 50368,
}  # fmt: skip

MINISTRAL3 = {
    "architectures": ["Ministral3ForCausalLM"], "attention_dropout": 0.0, "head_dim": 128, "hidden_act": "silu",
    "hidden_size": 4096, "initializer_range": 0.02, "intermediate_size": 14336, "max_position_embeddings": 262144,
    "model_type": "ministral3", "num_attention_heads": 32, "num_hidden_layers": 34, "num_key_value_heads": 8,
    "rms_norm_eps": 1e-05,
    "rope_parameters": {
        "beta_fast": 32.0, "beta_slow": 1.0, "factor": 16.0, "llama_4_scaling_beta": 0.1, "mscale": 1.0,
        "mscale_all_dim": 1.0, "original_max_position_embeddings": 16384, "rope_theta": 1000000.0,
        "rope_type": "yarn", "type": "yarn",
    },
    "sliding_window": None, "use_cache": True, "vocab_size": 131072,
}  # fmt: skip

GEMMA4 = {
    "architectures": ["Gemma4ForCausalLM"], "attention_bias": False, "attention_dropout": 0.0,
    "attention_k_eq_v": False, "bos_token_id": 2, "dtype": "bfloat16", "enable_moe_block": False, "eos_token_id": 1,
    "expert_intermediate_size": None, "final_logit_softcapping": 30.0, "global_head_dim": 512, "head_dim": 256,
    "hidden_activation": "gelu_pytorch_tanh", "hidden_size": 1536, "hidden_size_per_layer_input": 256,
    "initializer_range": 0.02, "intermediate_size": 6144,
    "layer_types": [*["sliding_attention"] * 4, "full_attention"] * 7, "max_position_embeddings": 131072,
    "model_type": "gemma4_text", "num_attention_heads": 8, "num_experts": None, "num_global_key_value_heads": None,
    "num_hidden_layers": 35, "num_key_value_heads": 1, "num_kv_shared_layers": 20, "pad_token_id": 0,
    "rms_norm_eps": 1e-06,
    "rope_parameters": {
        "full_attention": {"partial_rotary_factor": 0.25, "rope_theta": 1000000.0, "rope_type": "proportional"},
        "sliding_attention": {"rope_theta": 10000.0, "rope_type": "default"},
    },
    "sliding_window": 512, "tie_word_embeddings": True, "top_k_experts": None, "use_bidirectional_attention": None,
    "use_cache": True, "use_double_wide_mlp": True, "vocab_size": 262144, "vocab_size_per_layer_input": 262144,
}  # fmt: skip
"""The text part of Gemma 4 E2B's config."""

DENSE: dict[str, Any] = {
    "gemma4-e2b-text": GEMMA4,
    "gemma4-e4b-text": {
        **GEMMA4, "hidden_size": 2560, "intermediate_size": 10240, "num_hidden_layers": 42, "num_key_value_heads": 2,
        "layer_types": [*["sliding_attention"] * 5, "full_attention"] * 7, "num_kv_shared_layers": 18,
        "use_double_wide_mlp": False,
    },
    "gemma4-26b-a4b-text": {
        **GEMMA4, "attention_k_eq_v": True, "enable_moe_block": True, "hidden_size": 2816,
        "hidden_size_per_layer_input": 0, "intermediate_size": 2112,
        "layer_types": [*["sliding_attention"] * 5, "full_attention"] * 5, "max_position_embeddings": 262144,
        "moe_intermediate_size": 704, "num_attention_heads": 16, "num_experts": 128, "num_global_key_value_heads": 2,
        "num_hidden_layers": 30, "num_key_value_heads": 8, "num_kv_shared_layers": 0, "sliding_window": 1024,
        "top_k_experts": 8, "use_double_wide_mlp": False,
    },
    "gemma4-31b-text": {
        **GEMMA4, "attention_k_eq_v": True, "hidden_size": 5376, "hidden_size_per_layer_input": 0,
        "intermediate_size": 21504, "layer_types": [*["sliding_attention"] * 5, "full_attention"] * 10,
        "max_position_embeddings": 262144, "num_attention_heads": 32, "num_global_key_value_heads": 4,
        "num_hidden_layers": 60, "num_key_value_heads": 16, "num_kv_shared_layers": 0, "sliding_window": 1024,
        "use_double_wide_mlp": False,
    },
    "ministral-3-8b-text": MINISTRAL3,
    "ministral-3-3b-text": {
        **MINISTRAL3, "hidden_size": 3072, "intermediate_size": 9216, "num_hidden_layers": 26,
        "tie_word_embeddings": True,
    },
    "xglm-564m": XGLM,
    "xglm-7.5b": {**XGLM, "attention_heads": 32, "d_model": 4096, "ffn_dim": 16384, "num_layers": 32},
    "apertus-8b": APERTUS,
    "apertus-70b": {
        **APERTUS, "hidden_size": 8192, "intermediate_size": 43008, "num_attention_heads": 64, "num_hidden_layers": 80,
    },
    "ettin-decoder-150m": ETTIN,
    "ettin-decoder-1b": {
        **ETTIN, "hidden_size": 1792, "intermediate_size": 3840, "num_attention_heads": 28, "num_hidden_layers": 28,
    },
    "starcoder2-3b": STARCODER2,
    "exaone-4-32b": EXAONE4,
    "minitron-4b": {
        "architectures": ["NemotronForCausalLM"], "bos_token_id": 2, "eos_token_id": 3, "hidden_act": "relu2",
        "hidden_size": 3072, "initializer_range": 0.0134, "intermediate_size": 9216,
        "max_position_embeddings": 4096, "model_type": "nemotron", "num_attention_heads": 24, "head_dim": 128,
        "num_hidden_layers": 32, "num_key_value_heads": 8, "norm_eps": 1e-05, "rope_theta": 10000,
        "partial_rotary_factor": 0.5, "tie_word_embeddings": False, "torch_dtype": "bfloat16",
        "transformers_version": "4.32.0.dev0", "use_cache": True, "vocab_size": 256000,
    },
    "olmo3-7b": {
        "architectures": ["Olmo3ForCausalLM"], "attention_bias": False, "attention_dropout": 0.0,
        "eos_token_id": 100257, "hidden_act": "silu", "hidden_size": 4096, "initializer_range": 0.02,
        "intermediate_size": 11008, "layer_types": [*["sliding_attention"] * 3, "full_attention"] * 8,
        "max_position_embeddings": 65536, "model_type": "olmo3", "num_attention_heads": 32,
        "num_hidden_layers": 32, "num_key_value_heads": 32, "pad_token_id": 100277, "rms_norm_eps": 1e-06,
        "rope_scaling": {
            "attention_factor": 1.2079441541679836, "beta_fast": 32.0, "beta_slow": 1.0, "factor": 8.0,
            "original_max_position_embeddings": 8192, "rope_type": "yarn",
        },
        "rope_theta": 500000, "sliding_window": 4096, "tie_word_embeddings": False, "torch_dtype": "float32",
        "transformers_version": "4.57.0", "use_cache": False, "vocab_size": 100278,
    },
    "glm-4-9b-0414": {
        "architectures": ["Glm4ForCausalLM"], "attention_bias": True, "attention_dropout": 0.0,
        "eos_token_id": [151329, 151336, 151338], "head_dim": 128, "hidden_act": "silu", "hidden_size": 4096,
        "initializer_range": 0.02, "intermediate_size": 13696, "max_position_embeddings": 32768,
        "model_type": "glm4", "num_attention_heads": 32, "num_hidden_layers": 40, "num_key_value_heads": 2,
        "pad_token_id": 151329, "partial_rotary_factor": 0.5, "rms_norm_eps": 1e-05, "rope_theta": 10000.0,
        "tie_word_embeddings": False, "torch_dtype": "bfloat16", "transformers_version": "4.52.0.dev0",
        "use_cache": True, "vocab_size": 151552,
    },
    "mpt-7b": {
        "architectures": ["MPTForCausalLM"],
        "attn_config": {
            "alibi": True, "alibi_bias_max": 8, "attn_impl": "torch", "attn_pdrop": 0,
            "attn_type": "multihead_attention", "attn_uses_sequence_id": False, "clip_qkv": None,
            "prefix_lm": False, "qk_ln": False, "softmax_scale": None,
        },
        "d_model": 4096, "emb_pdrop": 0, "embedding_fraction": 1.0, "expansion_ratio": 4, "init_device": "cpu",
        "learned_pos_emb": True, "logit_scale": None, "max_seq_len": 2048, "model_type": "mpt", "n_heads": 32,
        "n_layers": 32, "no_bias": True, "norm_type": "low_precision_layernorm", "resid_pdrop": 0,
        "tokenizer_name": "EleutherAI/gpt-neox-20b", "torch_dtype": "bfloat16", "transformers_version": "4.28.1",
        "use_cache": False, "verbose": 0, "vocab_size": 50432,
    },
    "starcoder-15b": {
        "activation_function": "gelu", "architectures": ["GPTBigCodeForCausalLM"],
        "attention_softmax_in_fp32": True, "multi_query": True, "attn_pdrop": 0.1, "bos_token_id": 0,
        "embd_pdrop": 0.1, "eos_token_id": 0, "inference_runner": 0, "initializer_range": 0.02,
        "layer_norm_epsilon": 1e-05, "max_batch_size": None, "max_sequence_length": None,
        "model_type": "gpt_bigcode", "n_embd": 6144, "n_head": 48, "n_inner": 24576, "n_layer": 40,
        "n_positions": 8192, "pad_key_length": True, "pre_allocate_kv_cache": False, "resid_pdrop": 0.1,
        "scale_attention_softmax_in_fp32": True, "scale_attn_weights": True, "summary_activation": None,
        "summary_first_dropout": 0.1, "summary_proj_to_labels": True, "summary_type": "cls_index",
        "summary_use_proj": True, "torch_dtype": "float32", "transformers_version": "4.28.1", "use_cache": True,
        "validate_runner_input": True, "vocab_size": 49152,
    },
}  # fmt: skip
