"""Configs of decoders with attention in some layers and states of constant size in the others, as they were published."""

from __future__ import annotations

from typing import Any

Data = dict[str, Any]

LFM2: Data = {
    "architectures": ["Lfm2ForCausalLM"], "block_auto_adjust_ff_dim": True, "block_dim": 2048, "block_ff_dim": 12288,
    "block_ffn_dim_multiplier": 1.0, "block_mlp_init_scale": 1.0, "block_multiple_of": 256, "block_norm_eps": 1e-05,
    "block_out_init_scale": 1.0, "block_use_swiglu": True, "block_use_xavier_init": True, "bos_token_id": 1,
    "conv_L_cache": 3, "conv_bias": False, "conv_dim": 2048, "conv_dim_out": 2048, "conv_use_xavier_init": True,
    "eos_token_id": 7, "full_attn_idxs": [2, 5, 8, 10, 12, 14], "hidden_size": 2048, "initializer_range": 0.02,
    "max_position_embeddings": 128000, "model_type": "lfm2", "norm_eps": 1e-05, "num_attention_heads": 32,
    "num_heads": 32, "num_hidden_layers": 16, "num_key_value_heads": 8, "pad_token_id": 0, "rope_theta": 1000000.0,
    "torch_dtype": "bfloat16", "transformers_version": "4.54.0.dev0", "use_cache": True, "use_pos_enc": True,
    "vocab_size": 65536,
}  # fmt: skip
CONV, FULL, LINEAR = "conv", "full_attention", "linear_attention"
DELTA: Data = {
    "full_attention_interval": 4, "head_dim": 256, "hidden_act": "silu", "initializer_range": 0.02,
    "linear_conv_kernel_dim": 4, "linear_key_head_dim": 128, "linear_num_key_heads": 16, "linear_num_value_heads": 32,
    "linear_value_head_dim": 128, "max_position_embeddings": 262144, "rms_norm_eps": 1e-06, "use_cache": True,
}  # fmt: skip
QWEN3_5: Data = {
    **DELTA, "architectures": ["Qwen3_5ForCausalLM"], "attention_bias": False, "attention_dropout": 0.0,
    "attn_output_gate": True, "dtype": "bfloat16", "eos_token_id": 248044, "hidden_size": 4096,
    "intermediate_size": 12288, "layer_types": ([LINEAR] * 3 + [FULL]) * 8, "mamba_ssm_dtype": "float32",
    "mlp_only_layers": [], "model_type": "qwen3_5_text", "mtp_num_hidden_layers": 1, "mtp_use_dedicated_embeddings": False,
    "num_attention_heads": 16, "num_hidden_layers": 32, "num_key_value_heads": 4, "rope_parameters": {
        "mrope_interleaved": True, "mrope_section": [11, 11, 10], "partial_rotary_factor": 0.25,
        "rope_theta": 10000000, "rope_type": "default",
    }, "tie_word_embeddings": False, "vocab_size": 248320,
}  # fmt: skip


def _text(**changes: Any) -> Data:
    """The decoder of a model with images."""
    return {**{name: value for name, value in QWEN3_5.items() if name != "architectures"}, **changes}


def _with_images(text: Data, **vision: Any) -> Data:
    """The config of a model with images, around its decoder's config."""
    mixture = "_moe" if "num_experts" in text else ""
    seen = {
        "deepstack_visual_indexes": [], "depth": 27, "hidden_act": "gelu_pytorch_tanh", "hidden_size": 1152,
        "in_channels": 3, "initializer_range": 0.02, "intermediate_size": 4304, "model_type": f"qwen3_5{mixture}",
        "num_heads": 16, "num_position_embeddings": 2304, "out_hidden_size": text["hidden_size"], "patch_size": 16,
        "spatial_merge_size": 2, "temporal_patch_size": 2,
    }  # fmt: skip
    return {
        "architectures": [f"Qwen3_5{'Moe' if mixture else ''}ForConditionalGeneration"], "image_token_id": 248056,
        "model_type": f"qwen3_5{mixture}", "text_config": text, "tie_word_embeddings": text["tie_word_embeddings"],
        "transformers_version": "4.57.0.dev0", "video_token_id": 248057, "vision_config": {**seen, **vision},
        "vision_end_token_id": 248054, "vision_start_token_id": 248053,
    }  # fmt: skip


_SMALL = _text(
    hidden_size=1024, intermediate_size=3584, layer_types=([LINEAR] * 3 + [FULL]) * 6, linear_num_value_heads=16,
    num_attention_heads=8, num_hidden_layers=24, num_key_value_heads=2, tie_word_embeddings=True,
)  # fmt: skip
_SPARSE = {
    **{name: value for name, value in _text().items() if name != "intermediate_size"},
    "hidden_size": 2048, "layer_types": ([LINEAR] * 3 + [FULL]) * 10, "model_type": "qwen3_5_moe_text",
    "moe_intermediate_size": 512, "num_experts": 256, "num_experts_per_tok": 8, "num_hidden_layers": 40,
    "num_key_value_heads": 2, "output_router_logits": False, "router_aux_loss_coef": 0.001,
    "shared_expert_intermediate_size": 512,
}  # fmt: skip
HYBRIDS: dict[str, Data] = {
    "lfm2-350m": {
        **LFM2, "block_dim": 1024, "block_ff_dim": 6656, "conv_dim": 1024, "conv_dim_out": 1024, "hidden_size": 1024,
        "num_attention_heads": 16, "num_heads": 16, "tie_embedding": True,
    },
    "lfm2-1.2b": LFM2,
    "lfm2-8b-a1b": {
        "architectures": ["Lfm2MoeForCausalLM"], "bos_token_id": 1, "conv_L_cache": 3, "conv_bias": False,
        "dtype": "bfloat16", "eos_token_id": 7, "hidden_size": 2048, "initializer_range": 0.02,
        "intermediate_size": 7168, "layer_types": [
            FULL if layer in (2, 6, 10, 14, 18, 21) else CONV for layer in range(24)
        ], "max_position_embeddings": 128000, "model_type": "lfm2_moe", "moe_intermediate_size": 1792,
        "norm_eps": 1e-05, "norm_topk_prob": True, "num_attention_heads": 32, "num_dense_layers": 2,
        "num_experts": 32, "num_experts_per_tok": 4, "num_hidden_layers": 24, "num_key_value_heads": 8,
        "pad_token_id": 0, "rope_theta": 1000000.0, "routed_scaling_factor": 1.0, "use_cache": True,
        "use_expert_bias": True, "vocab_size": 65536,
    },
    "qwen3-next-80b-a3b": {
        **DELTA, "architectures": ["Qwen3NextForCausalLM"], "attention_dropout": 0.0, "bos_token_id": 151643,
        "decoder_sparse_step": 1, "eos_token_id": 151645, "hidden_size": 2048, "intermediate_size": 5120,
        "mlp_only_layers": [], "model_type": "qwen3_next", "moe_intermediate_size": 512, "norm_topk_prob": True,
        "num_attention_heads": 16, "num_experts": 512, "num_experts_per_tok": 10, "num_hidden_layers": 48,
        "num_key_value_heads": 2, "output_router_logits": False, "partial_rotary_factor": 0.25, "rope_scaling": None,
        "rope_theta": 10000000, "router_aux_loss_coef": 0.001, "shared_expert_intermediate_size": 512,
        "tie_word_embeddings": False, "torch_dtype": "bfloat16", "transformers_version": "4.57.0.dev0",
        "use_sliding_window": False, "vocab_size": 151936,
    },
    "qwen3.5-9b-text": QWEN3_5,
    "qwen3.5-35b-a3b-text": {**_SPARSE, "architectures": ["Qwen3_5MoeForCausalLM"]},
    "qwen3.5-0.8b-text": {**_SMALL, "architectures": ["Qwen3_5ForCausalLM"]},
    "qwen3.5-0.8b": _with_images(_SMALL, depth=12, hidden_size=768, intermediate_size=3072, num_heads=12),
    "qwen3.5-2b": _with_images(
        {**_SMALL, "hidden_size": 2048, "intermediate_size": 6144}, depth=24, hidden_size=1024, intermediate_size=4096
    ),
    "qwen3.5-4b": _with_images(
        _text(hidden_size=2560, intermediate_size=9216, tie_word_embeddings=True),
        depth=24, hidden_size=1024, intermediate_size=4096,
    ),
    "qwen3.5-9b": _with_images(_text()),
    "qwen3.5-27b": _with_images(
        _text(
            hidden_size=5120, intermediate_size=17408, layer_types=([LINEAR] * 3 + [FULL]) * 16,
            linear_num_value_heads=48, num_attention_heads=24, num_hidden_layers=64,
        )
    ),
    "qwen3.5-35b-a3b": _with_images(_SPARSE),
    "kimi-linear-48b-a3b": {
        "architectures": ["KimiLinearForCausalLM"], "bos_token_id": 163584, "dtype": "bfloat16",
        "eos_token_id": 163586, "first_k_dense_replace": 1, "head_dim": 72, "hidden_act": "silu", "hidden_size": 2304,
        "initializer_range": 0.02, "intermediate_size": 9216, "kv_lora_rank": 512, "linear_attn_config": {
            "full_attn_layers": [4, 8, 12, 16, 20, 24, 27], "head_dim": 128,
            "kda_layers": [1, 2, 3, 5, 6, 7, 9, 10, 11, 13, 14, 15, 17, 18, 19, 21, 22, 23, 25, 26],
            "num_heads": 32, "short_conv_kernel_size": 4,
        }, "mla_use_nope": True, "model_max_length": 1048576, "model_type": "kimi_linear",
        "moe_intermediate_size": 1024, "moe_layer_freq": 1, "moe_renormalize": True,
        "moe_router_activation_func": "sigmoid", "num_attention_heads": 32, "num_expert_group": 1,
        "num_experts": 256, "num_experts_per_token": 8, "num_hidden_layers": 27, "num_key_value_heads": 32,
        "num_nextn_predict_layers": 0, "num_shared_experts": 1, "pad_token_id": 163839, "q_lora_rank": None,
        "qk_nope_head_dim": 128, "qk_rope_head_dim": 64, "rms_norm_eps": 1e-05, "rope_scaling": None,
        "rope_theta": 10000.0, "routed_scaling_factor": 2.446, "tie_word_embeddings": False, "topk_group": 1,
        "transformers_version": "4.56.2", "use_cache": True, "use_grouped_topk": True, "v_head_dim": 128,
        "vocab_size": 163840,
    },
}  # fmt: skip
