"""Configs of recent models: the fields of the published files that public repositories show."""

from __future__ import annotations

from typing import Any

from tests.zoo.configs.published_hybrids import CONV, FULL, LFM2

SLIDING = "sliding_attention"
_SIZES = {
    "2b": (2304, 9216, 26, 8, 4, 256),
    "9b": (3584, 14336, 42, 16, 8, 256),
    "s": (512, 1024, 8, 8, 8, 64),
    "b": (768, 2048, 12, 12, 12, 64),
    "l": (1024, 2816, 24, 16, 16, 64),
    "ml": (1152, 6912, 26, 4, 4, 256),
    "xl": (2048, 5120, 24, 32, 32, 64),
}
"""Width, hidden width, layers, heads, heads of keys and their width, as Google's own program for T5Gemma states them."""


def _module(size: str, **more: Any) -> dict[str, Any]:
    """One of the stacks of T5Gemma."""
    width, hidden, layers, heads, kv_heads, head_dim = _SIZES[size]
    return {
        "attention_bias": False, "attention_dropout": 0.0, "attn_logit_softcapping": 50.0, "classifier_dropout_rate": 0.0,
        "dropout_rate": 0.0, "final_logit_softcapping": 30.0, "head_dim": head_dim, "hidden_activation": "gelu_pytorch_tanh",
        "hidden_size": width, "initializer_range": 0.02, "intermediate_size": hidden,
        "layer_types": [SLIDING, FULL] * (layers // 2), "max_position_embeddings": 8192, "model_type": "t5_gemma_module",
        "num_attention_heads": heads, "num_hidden_layers": layers, "num_key_value_heads": kv_heads,
        "query_pre_attn_scalar": head_dim, "rms_norm_eps": 1e-06, "rope_theta": 10000.0, "sliding_window": 4096,
        "torch_dtype": "bfloat16", "use_cache": True, "vocab_size": 256000, **more,
    }  # fmt: skip


def _t5gemma(encoder: str, decoder: str) -> dict[str, Any]:
    width = _SIZES[encoder][0]
    return {
        "architectures": ["T5GemmaForConditionalGeneration"], "attention_dropout": 0.0, "classifier_dropout_rate": 0.0,
        "decoder": _module(decoder, is_decoder=True, cross_attention_hidden_size=width), "dropout_rate": 0.0,
        "encoder": _module(encoder), "eos_token_id": [1, 107], "initializer_range": 0.02, "is_encoder_decoder": True,
        "model_type": "t5gemma", "pad_token_id": 0, "torch_dtype": "bfloat16", "transformers_version": "4.54.0.dev0",
        "use_cache": True,
    }  # fmt: skip


def _granite(
    width: int, layers: int, heads: int, kv_heads: int, hidden: int, *, scale: float, scores: int, residual: float,
    context: int = 131072,
) -> dict[str, Any]:  # fmt: skip
    """Granite 4.0 without state space layers: the values of the GGUF files that IBM publishes, in the fields of a config of the micro
    size."""
    return {
        "architectures": ["GraniteMoeHybridForCausalLM"], "attention_bias": False, "attention_dropout": 0.0,
        "attention_multiplier": scale, "bos_token_id": 100257, "dtype": "bfloat16", "embedding_multiplier": 12,
        "eos_token_id": 100257, "hidden_act": "silu", "hidden_size": width, "initializer_range": 0.1,
        "intermediate_size": hidden, "layer_types": ["attention"] * layers, "logits_scaling": scores,
        "mamba_chunk_size": 256, "mamba_conv_bias": True, "mamba_d_conv": 4, "mamba_d_head": width // 64,
        "mamba_d_state": 256, "mamba_expand": 2, "mamba_n_groups": 1, "mamba_n_heads": 128, "mamba_proj_bias": False,
        "max_position_embeddings": context, "model_type": "granitemoehybrid", "normalization_function": "rmsnorm",
        "num_attention_heads": heads, "num_experts_per_tok": 0, "num_hidden_layers": layers,
        "num_key_value_heads": kv_heads, "num_local_experts": 0, "position_embedding_type": "rope",
        "residual_multiplier": residual, "rms_norm_eps": 1e-05, "rope_scaling": None, "rope_theta": 10000000,
        "shared_intermediate_size": hidden, "tie_word_embeddings": True, "vocab_size": 100352,
    }  # fmt: skip


TRINITY = {
    "architectures": ["AfmoeForCausalLM"], "attention_dropout": 0.0,
    "auto_map": {"AutoConfig": "configuration_afmoe.AfmoeConfig", "AutoModel": "modeling_afmoe.AfmoeModel"},
    "dtype": "bfloat16", "global_attn_every_n_layers": 4, "head_dim": 128, "hidden_act": "silu", "hidden_size": 1024,
    "initializer_range": 0.02, "intermediate_size": 3072, "max_position_embeddings": 131072, "model_type": "afmoe",
    "moe_intermediate_size": 256, "mup_enabled": True, "n_group": 1, "num_attention_heads": 8, "num_dense_layers": 2,
    "num_expert_groups": 1, "num_experts": 128, "num_experts_per_tok": 8, "num_hidden_layers": 56,
    "num_key_value_heads": 2, "num_limited_groups": 1, "num_shared_experts": 1, "rms_norm_eps": 1e-05,
    "rope_scaling": None, "rope_theta": 10000, "route_norm": True, "route_scale": 2.826, "score_func": "sigmoid",
    "sliding_window": 2048, "tie_word_embeddings": False, "topk_group": 1, "transformers_version": "4.57.3",
    "use_cache": True, "use_grouped_mm": True, "vocab_size": 200192,
}  # fmt: skip
_LONG = [
    1, 1.118320672, 1.250641126, 1.398617824, 1.564103225, 1.74916897, 1.956131817, 2.187582649, 2.446418898,
    2.735880826, 3.059592084, 3.421605075, 3.826451687, 4.279200023, 4.785517845, 5.351743533, 5.984965424, 6.693110555,
    7.485043894, 8.370679318, 9.36110372, 10.4687158, 11.70738129, 13.09260651, 14.64173252, 16.37415215, 18.31155283,
    20.47818807, 22.90118105, 25.61086418, 28.64115884, 32.03, 32.1, 32.13, 32.23, 32.6, 32.61, 32.64, 32.66, 32.7, 32.71,
    32.93, 32.97, 33.28, 33.49, 33.5, 44.16, 47.77,
]  # fmt: skip
RECENT: dict[str, dict[str, Any]] = {
    "t5gemma-2b-2b": _t5gemma("2b", "2b"),
    "t5gemma-9b-2b": _t5gemma("9b", "2b"),
    "t5gemma-9b-9b": _t5gemma("9b", "9b"),
    **{f"t5gemma-{size}-{size}": _t5gemma(size, size) for size in ("s", "b", "l", "ml", "xl")},
    "granite-4.0-micro": _granite(2560, 40, 40, 8, 8192, scale=0.015625, scores=10, residual=0.22),
    "granite-4.0-1b": _granite(2048, 40, 16, 4, 4096, scale=0.0078125, scores=8, residual=0.22),
    "granite-4.0-350m": _granite(1024, 28, 16, 4, 2048, scale=0.015625, scores=4, residual=0.263, context=32768),
    "trinity-nano": TRINITY,
    "trinity-mini": {
        **TRINITY, "hidden_size": 2048, "intermediate_size": 6144, "moe_intermediate_size": 1024,
        "layer_types": [SLIDING, SLIDING, SLIDING, FULL] * 8, "num_attention_heads": 32, "num_hidden_layers": 32,
        "num_key_value_heads": 4,
    },
    "hunyuan-a13b": {
        "architectures": ["HunYuanMoEV1ForCausalLM"], "attention_bias": False, "attention_dropout": 0.0,
        "cla_share_factor": 2, "head_dim": 128, "hidden_act": "silu", "hidden_size": 4096, "initializer_range": 0.02,
        "intermediate_size": 3072, "max_position_embeddings": 32768, "model_type": "hunyuan_v1_moe",
        "moe_intermediate_size": [3072] * 32, "moe_topk": [8] * 32, "num_attention_heads": 32, "num_experts": 64,
        "num_hidden_layers": 32, "num_key_value_heads": 8, "num_shared_expert": [1] * 32, "rms_norm_eps": 1e-05,
        "rope_scaling": {
            "alpha": 1000.0, "beta_fast": 32, "beta_slow": 1, "factor": 1.0, "mscale": 1.0, "mscale_all_dim": 1.0,
            "type": "dynamic",
        },
        "rope_theta": 10000.0, "tie_word_embeddings": True, "torch_dtype": "bfloat16", "use_cla": False,
        "use_mixed_mlp_moe": True, "use_qk_norm": True, "vocab_size": 128167,
    },
    "dbrx": {
        "architectures": ["DbrxForCausalLM"],
        "attn_config": {
            "return_dict": True, "output_hidden_states": False, "torch_dtype": None, "tie_word_embeddings": True,
            "max_length": 20, "temperature": 1.0, "top_k": 50, "top_p": 1.0, "id2label": {"0": "LABEL_0", "1": "LABEL_1"},
            "model_type": "", "attn_pdrop": 0, "clip_qkv": 8, "kv_n_heads": 8, "rope_theta": 500000,
        },
        "d_model": 6144, "emb_pdrop": 0.0,
        "ffn_config": {
            "return_dict": True, "tie_word_embeddings": True, "temperature": 1.0, "model_type": "",
            "ffn_act_fn": {"name": "silu"}, "ffn_hidden_size": 10752, "moe_num_experts": 16, "moe_top_k": 4,
            "moe_jitter_eps": 0, "moe_loss_weight": 0.05, "moe_normalize_expert_weights": 1,
            "uniform_expert_assignment": False,
        },
        "initializer_range": 0.02, "max_seq_len": 32768, "model_type": "dbrx", "n_heads": 48, "n_layers": 40,
        "output_router_logits": False, "resid_pdrop": 0.0, "router_aux_loss_coef": 0.05, "tie_word_embeddings": False,
        "torch_dtype": "bfloat16", "transformers_version": "4.39.2", "use_cache": True, "vocab_size": 100352,
    },
    "lfm2-2.6b": {
        **LFM2, "block_auto_adjust_ff_dim": False, "block_ff_dim": 10752, "num_hidden_layers": 30,
        "layer_types": [FULL if layer in (2, 5, 9, 13, 17, 21, 24, 27) else CONV for layer in range(30)],
    },
    "phi-4-mini": {
        "architectures": ["Phi3ForCausalLM"], "attention_bias": False, "attention_dropout": 0.0, "bos_token_id": 199999,
        "embd_pdrop": 0.0, "eos_token_id": 199999, "full_attn_mod": 1, "hidden_act": "silu", "hidden_size": 3072,
        "initializer_range": 0.02, "intermediate_size": 8192, "interpolate_factor": 1, "lm_head_bias": False,
        "max_position_embeddings": 131072, "mlp_bias": False, "model_type": "phi3", "num_attention_heads": 24,
        "num_hidden_layers": 32, "num_key_value_heads": 8, "original_max_position_embeddings": 4096,
        "pad_token_id": 199999, "partial_rotary_factor": 0.75, "resid_pdrop": 0.0, "rms_norm_eps": 1e-05,
        "rope_scaling": {"long_factor": _LONG, "short_factor": [1.0] * 48, "type": "longrope"}, "rope_theta": 10000.0,
        "sliding_window": 262144, "tie_word_embeddings": True, "torch_dtype": "bfloat16", "use_cache": True,
        "vocab_size": 200064,
    },
    "orpheus-3b": {
        "architectures": ["LlamaForCausalLM"], "attention_bias": False, "attention_dropout": 0.0, "bos_token_id": 128000,
        "eos_token_id": 128009, "head_dim": 128, "hidden_act": "silu", "hidden_size": 3072, "initializer_range": 0.02,
        "intermediate_size": 8192, "max_position_embeddings": 131072, "mlp_bias": False, "model_type": "llama",
        "num_attention_heads": 24, "num_hidden_layers": 28, "num_key_value_heads": 8, "pad_token_id": 128004,
        "pretraining_tp": 1, "rms_norm_eps": 1e-05,
        "rope_scaling": {
            "factor": 32.0, "high_freq_factor": 4.0, "low_freq_factor": 1.0, "original_max_position_embeddings": 8192,
            "rope_type": "llama3",
        },
        "rope_theta": 500000.0, "tie_word_embeddings": True, "torch_dtype": "bfloat16", "use_cache": True,
        "vocab_size": 156940,
    },
    "olmo-hybrid-7b": {
        "architectures": ["OlmoHybridForCausalLM"], "attention_bias": False, "attention_dropout": 0.0, "bos_token_id": None,
        "eos_token_id": 100257, "hidden_act": "silu", "hidden_size": 3840, "initializer_range": 0.02,
        "intermediate_size": 11008, "layer_types": ["linear_attention", "linear_attention", "linear_attention", FULL] * 8,
        "linear_allow_neg_eigval": True, "linear_conv_kernel_dim": 4, "linear_key_head_dim": 96,
        "linear_num_key_heads": 30, "linear_num_value_heads": 30, "linear_value_head_dim": 192,
        "max_position_embeddings": 65536, "model_type": "olmo_hybrid", "num_attention_heads": 30, "num_hidden_layers": 32,
        "num_key_value_heads": 30, "pad_token_id": 100277, "rms_norm_eps": 1e-06, "rope_parameters": {"rope_theta": None},
        "tie_word_embeddings": False, "use_cache": True, "vocab_size": 100352,
    },
    "mimo-v2-flash": {
        "add_full_attention_sink_bias": False, "add_swa_attention_sink_bias": True,
        "architectures": ["MiMoV2FlashForCausalLM"], "attention_bias": False, "attention_chunk_size": 128,
        "attention_dropout": 0.0, "attention_value_scale": 0.707, "head_dim": 192, "hidden_act": "silu",
        "hidden_size": 4096, "hybrid_block_size": None, "initializer_range": 0.02, "intermediate_size": 16384,
        "hybrid_layer_pattern": [int(layer > 0 and (layer + 1) % 6 != 0) for layer in range(48)],
        "layernorm_epsilon": 1e-05, "max_position_embeddings": 262144, "model_type": "mimo_v2_flash",
        "moe_intermediate_size": 2048, "moe_layer_freq": [int(layer > 0) for layer in range(48)], "n_group": 1,
        "n_routed_experts": 256, "n_shared_experts": None, "norm_topk_prob": True, "num_attention_heads": 64,
        "num_experts_per_tok": 8, "num_hidden_layers": 48, "num_key_value_heads": 4, "partial_rotary_factor": 0.334,
        "rope_theta": 5000000, "routed_scaling_factor": None, "scoring_func": "sigmoid", "sliding_window": 128,
        "sliding_window_size": 128, "swa_head_dim": 192, "swa_num_attention_heads": 64, "swa_num_key_value_heads": 8,
        "swa_rope_theta": 10000, "swa_v_head_dim": 128, "tie_word_embeddings": False, "topk_group": 1,
        "topk_method": "noaux_tc", "torch_dtype": "bfloat16", "use_cache": True, "v_head_dim": 128, "vocab_size": 152576,
    },
}  # fmt: skip
