"""Configs of Granite, ERNIE and mixtures of experts, as they were published."""

from __future__ import annotations

from typing import Any

GRANITE = {
    "architectures": ["GraniteForCausalLM"], "attention_bias": False, "attention_dropout": 0.1,
    "attention_multiplier": 0.015625, "bos_token_id": 0, "embedding_multiplier": 12.0, "eos_token_id": 0,
    "hidden_act": "silu", "hidden_size": 2048, "initializer_range": 0.02, "intermediate_size": 8192,
    "logits_scaling": 8.0, "max_position_embeddings": 131072, "mlp_bias": False, "model_type": "granite",
    "num_attention_heads": 32, "num_hidden_layers": 40, "num_key_value_heads": 8, "pad_token_id": 0,
    "residual_multiplier": 0.22, "rms_norm_eps": 1e-05, "rope_scaling": None, "rope_theta": 5000000.0,
    "tie_word_embeddings": True, "torch_dtype": "bfloat16", "transformers_version": "4.47.0", "use_cache": True,
    "vocab_size": 49155,
}  # fmt: skip

GLM = {
    "architectures": ["Glm4MoeForCausalLM"], "attention_bias": True, "attention_dropout": 0.0,
    "eos_token_id": [151329, 151336, 151338], "first_k_dense_replace": 1, "head_dim": 128, "hidden_act": "silu",
    "hidden_size": 4096, "initializer_range": 0.02, "intermediate_size": 10944, "max_position_embeddings": 131072,
    "model_type": "glm4_moe", "moe_intermediate_size": 1408, "n_group": 1, "n_routed_experts": 128,
    "n_shared_experts": 1, "norm_topk_prob": True, "num_attention_heads": 96, "num_experts_per_tok": 8,
    "num_hidden_layers": 46, "num_key_value_heads": 8, "num_nextn_predict_layers": 1, "pad_token_id": 151329,
    "partial_rotary_factor": 0.5, "rms_norm_eps": 1e-05, "rope_scaling": None, "rope_theta": 1000000,
    "routed_scaling_factor": 1.0, "tie_word_embeddings": False, "topk_group": 1, "torch_dtype": "bfloat16",
    "transformers_version": "4.54.0", "use_cache": True, "use_qk_norm": False, "vocab_size": 151552,
}  # fmt: skip
ERNIE = {
    "bos_token_id": 1, "eos_token_id": 2, "hidden_act": "silu", "initializer_range": 0.02,
    "max_position_embeddings": 131072, "pad_token_id": 0, "rms_norm_eps": 1e-05, "rope_theta": 500000,
    "tie_word_embeddings": True, "torch_dtype": "bfloat16", "use_bias": False, "use_cache": True,
    "vocab_size": 103424,
}  # fmt: skip
LLAMA4 = {
    "architectures": ["Llama4ForCausalLM"], "attention_bias": False, "attention_chunk_size": 8192,
    "attention_dropout": 0.0, "bos_token_id": 200000, "eos_token_id": [200001, 200007, 200008],
    "for_llm_compressor": False, "head_dim": 128, "hidden_act": "silu", "hidden_size": 5120,
    "initializer_range": 0.02, "interleave_moe_layer_step": 1, "intermediate_size": 8192,
    "intermediate_size_mlp": 16384, "max_position_embeddings": 10485760, "model_type": "llama4_text",
    "no_rope_layers": [], "num_attention_heads": 40, "num_experts_per_tok": 1, "num_hidden_layers": 48,
    "num_key_value_heads": 8, "num_local_experts": 16, "output_router_logits": False, "pad_token_id": 200018,
    "rms_norm_eps": 1e-05,
    "rope_scaling": {
        "factor": 16.0, "high_freq_factor": 1.0, "low_freq_factor": 1.0, "original_max_position_embeddings": 8192,
        "rope_type": "llama3",
    },
    "rope_theta": 500000.0, "router_aux_loss_coef": 0.001, "router_jitter_noise": 0.0, "torch_dtype": "bfloat16",
    "use_cache": True, "use_qk_norm": True, "vocab_size": 202048,
}  # fmt: skip
"""The text_config of Llama 4 Scout."""

MIXTURES: dict[str, Any] = {
    "llama-4-scout-17b-16e-text": LLAMA4,
    "llama-4-maverick-17b-128e-text": {
        **LLAMA4, "interleave_moe_layer_step": 2, "max_position_embeddings": 1048576, "num_local_experts": 128,
        "rope_scaling": None, "use_qk_norm": False,
    },
    "granite-3.1-2b": GRANITE,
    "granite-3.1-8b": {
        **GRANITE, "attention_multiplier": 0.0078125, "hidden_size": 4096, "intermediate_size": 12800,
        "logits_scaling": 16.0, "rope_theta": 10000000.0,
    },
    "granite-3.1-1b-a400m": {
        **{name: value for name, value in GRANITE.items() if name != "mlp_bias"},
        "architectures": ["GraniteMoeForCausalLM"], "attention_dropout": 0.0, "hidden_size": 1024,
        "intermediate_size": 512, "logits_scaling": 6.0, "model_type": "granitemoe", "num_attention_heads": 16,
        "num_experts_per_tok": 8, "num_hidden_layers": 24, "num_local_experts": 32, "output_router_logits": False,
        "rms_norm_eps": 1e-06, "rope_theta": 1500000.0, "router_aux_loss_coef": 0.0,
    },
    "mixtral-8x7b": {
        "architectures": ["MixtralForCausalLM"], "attention_dropout": 0.0, "bos_token_id": 1, "eos_token_id": 2,
        "hidden_act": "silu", "hidden_size": 4096, "initializer_range": 0.02, "intermediate_size": 14336,
        "max_position_embeddings": 32768, "model_type": "mixtral", "num_attention_heads": 32,
        "num_experts_per_tok": 2, "num_hidden_layers": 32, "num_key_value_heads": 8, "num_local_experts": 8,
        "output_router_logits": False, "rms_norm_eps": 1e-05, "rope_theta": 1000000.0,
        "router_aux_loss_coef": 0.02, "sliding_window": None, "tie_word_embeddings": False,
        "torch_dtype": "bfloat16", "transformers_version": "4.36.0.dev0", "use_cache": True, "vocab_size": 32000,
    },
    "qwen3-30b-a3b": {
        "architectures": ["Qwen3MoeForCausalLM"], "attention_bias": False, "attention_dropout": 0.0,
        "bos_token_id": 151643, "decoder_sparse_step": 1, "eos_token_id": 151645, "head_dim": 128,
        "hidden_act": "silu", "hidden_size": 2048, "initializer_range": 0.02, "intermediate_size": 6144,
        "max_position_embeddings": 40960, "max_window_layers": 48, "mlp_only_layers": [],
        "model_type": "qwen3_moe", "moe_intermediate_size": 768, "norm_topk_prob": True,
        "num_attention_heads": 32, "num_experts": 128, "num_experts_per_tok": 8, "num_hidden_layers": 48,
        "num_key_value_heads": 4, "output_router_logits": False, "rms_norm_eps": 1e-06, "rope_scaling": None,
        "rope_theta": 1000000.0, "router_aux_loss_coef": 0.001, "sliding_window": None,
        "tie_word_embeddings": False, "torch_dtype": "bfloat16", "transformers_version": "4.51.0",
        "use_cache": True, "use_sliding_window": False, "vocab_size": 151936,
    },
    "gpt-oss-20b": {
        "architectures": ["GptOssForCausalLM"], "attention_bias": True, "attention_dropout": 0.0,
        "eos_token_id": 200002, "experts_per_token": 4, "head_dim": 64, "hidden_act": "silu",
        "hidden_size": 2880, "initial_context_length": 4096, "initializer_range": 0.02,
        "intermediate_size": 2880, "layer_types": ["sliding_attention", "full_attention"] * 12,
        "max_position_embeddings": 131072, "model_type": "gpt_oss", "num_attention_heads": 64,
        "num_experts_per_tok": 4, "num_hidden_layers": 24, "num_key_value_heads": 8, "num_local_experts": 32,
        "output_router_logits": False, "pad_token_id": 199999, "rms_norm_eps": 1e-05, "rope_scaling": {
            "beta_fast": 32.0, "beta_slow": 1.0, "factor": 32.0, "original_max_position_embeddings": 4096,
            "rope_type": "yarn", "truncate": False,
        }, "rope_theta": 150000, "router_aux_loss_coef": 0.9, "sliding_window": 128, "swiglu_limit": 7.0,
        "tie_word_embeddings": False, "transformers_version": "4.55.0.dev0", "use_cache": True,
        "vocab_size": 201088,
    },
    "deepseek-v3": {
        "architectures": ["DeepseekV3ForCausalLM"], "attention_bias": False, "attention_dropout": 0.0,
        "bos_token_id": 0, "eos_token_id": 1, "ep_size": 1, "first_k_dense_replace": 3, "hidden_act": "silu",
        "hidden_size": 7168, "initializer_range": 0.02, "intermediate_size": 18432, "kv_lora_rank": 512,
        "max_position_embeddings": 163840, "model_type": "deepseek_v3", "moe_intermediate_size": 2048,
        "moe_layer_freq": 1, "n_group": 8, "n_routed_experts": 256, "n_shared_experts": 1,
        "norm_topk_prob": True, "num_attention_heads": 128, "num_experts_per_tok": 8, "num_hidden_layers": 61,
        "num_key_value_heads": 128, "num_nextn_predict_layers": 1, "q_lora_rank": 1536,
        "qk_nope_head_dim": 128, "qk_rope_head_dim": 64, "rms_norm_eps": 1e-06, "rope_scaling": {
            "beta_fast": 32, "beta_slow": 1, "factor": 40, "mscale": 1.0, "mscale_all_dim": 1.0,
            "original_max_position_embeddings": 4096, "type": "yarn",
        }, "rope_theta": 10000, "routed_scaling_factor": 2.5, "scoring_func": "sigmoid",
        "tie_word_embeddings": False, "topk_group": 4, "topk_method": "noaux_tc", "torch_dtype": "bfloat16",
        "transformers_version": "4.33.1", "use_cache": True, "v_head_dim": 128, "vocab_size": 129280,
    },
    "olmoe-1b-7b": {
        "architectures": ["OlmoeForCausalLM"], "attention_bias": False, "attention_dropout": 0.0, "clip_qkv": None,
        "eos_token_id": 50279, "hidden_act": "silu", "hidden_size": 2048, "initializer_range": 0.02,
        "intermediate_size": 1024, "max_position_embeddings": 4096, "model_type": "olmoe", "norm_topk_prob": False,
        "num_attention_heads": 16, "num_experts": 64, "num_experts_per_tok": 8, "num_hidden_layers": 16,
        "num_key_value_heads": 16, "output_router_logits": False, "pad_token_id": 1, "rope_scaling": None,
        "rope_theta": 10000.0, "router_aux_loss_coef": 0.01, "tie_word_embeddings": False,
        "torch_dtype": "bfloat16", "transformers_version": "4.43.0.dev0", "use_cache": True, "vocab_size": 50304,
    },
    "glm-4.5-air": GLM,
    "glm-4.5": {
        **GLM, "first_k_dense_replace": 3, "hidden_size": 5120, "intermediate_size": 12288,
        "moe_intermediate_size": 1536, "n_routed_experts": 160, "num_hidden_layers": 92,
        "routed_scaling_factor": 2.5, "use_qk_norm": True,
    },
    "minimax-text-01": {
        "architectures": ["MiniMaxForCausalLM"], "model_type": "minimax", "layer_types": (
            ["linear_attention"] * 7 + ["full_attention"]
        ) * 10, "head_dim": 128, "hidden_size": 6144, "intermediate_size": 9216,
        "full_attn_alpha_factor": 3.5565588200778455, "full_attn_beta_factor": 1.0,
        "linear_attn_alpha_factor": 3.5565588200778455, "linear_attn_beta_factor": 1.0,
        "mlp_alpha_factor": 3.5565588200778455, "mlp_beta_factor": 1.0, "max_position_embeddings": 10240000,
        "num_attention_heads": 64, "num_experts_per_tok": 2, "num_hidden_layers": 80, "num_key_value_heads": 8,
        "num_local_experts": 32, "postnorm": True, "rms_norm_eps": 1e-05, "rope_theta": 10000000, "rotary_dim": 64,
        "shared_intermediate_size": 0, "shared_moe_mode": "sigmoid", "sliding_window": None,
        "tie_word_embeddings": False, "vocab_size": 200064,
    },
    "minimax-m2": {
        "architectures": ["MiniMaxM2ForCausalLM"], "attention_dropout": 0.0, "bos_token_id": None,
        "eos_token_id": None, "head_dim": 128, "hidden_act": "silu", "hidden_size": 3072,
        "initializer_range": 0.02, "intermediate_size": 1536, "max_position_embeddings": 196608,
        "model_type": "minimax_m2", "mtp_transformer_layers": 1, "num_attention_heads": 48,
        "num_experts_per_tok": 8, "num_hidden_layers": 62, "num_key_value_heads": 8, "num_local_experts": 256,
        "num_mtp_modules": 3, "output_router_logits": False, "qk_norm_type": "per_layer", "rms_norm_eps": 1e-06,
        "rope_theta": 5000000, "rotary_dim": 64, "router_aux_loss_coef": 0.001, "router_jitter_noise": 0.0,
        "scoring_func": "sigmoid", "shared_intermediate_size": 0, "sliding_window": None,
        "tie_word_embeddings": False, "transformers_version": "4.46.1", "use_cache": True, "use_mtp": True,
        "use_qk_norm": True, "use_routing_bias": True, "vocab_size": 200064,
    },
    "ernie-4.5-0.3b": {
        **ERNIE, "architectures": ["Ernie4_5ForCausalLM"], "head_dim": 128, "hidden_size": 1024,
        "intermediate_size": 3072, "model_type": "ernie4_5", "num_attention_heads": 16, "num_hidden_layers": 18,
        "num_key_value_heads": 2,
    },
    "ernie-4.5-21b-a3b": {
        **ERNIE, "architectures": ["Ernie4_5_MoeForCausalLM"], "hidden_size": 2560, "intermediate_size": 12288,
        "model_type": "ernie4_5_moe", "moe_intermediate_size": 1536, "moe_k": 6, "moe_layer_end_index": 27,
        "moe_layer_interval": 1, "moe_layer_start_index": 1, "moe_num_experts": 64, "moe_num_shared_experts": 2,
        "num_attention_heads": 20, "num_hidden_layers": 28, "num_key_value_heads": 4,
    },
}  # fmt: skip
