"""Configs of encoders of text, as they were published."""

from __future__ import annotations

from typing import Any

EUROBERT = {
    "architectures": ["EuroBertModel"], "attention_bias": False, "attention_dropout": 0.0,
    "auto_map": {"AutoModel": "modeling_eurobert.EuroBertModel"}, "bos_token": "<|begin_of_text|>",
    "bos_token_id": 128000, "clf_pooling": "late", "eos_token": "<|end_of_text|>", "eos_token_id": 128001,
    "hidden_act": "silu", "hidden_dropout": 0.0, "initializer_range": 0.02, "is_decoder": False,
    "mask_token": "<|mask|>", "mask_token_id": 128002, "max_position_embeddings": 8192, "mlp_bias": False,
    "model_type": "eurobert", "pad_token": "<|end_of_text|>", "pad_token_id": 128001, "pretraining_tp": 1,
    "rms_norm_eps": 1e-05, "rope_scaling": None, "rope_theta": 250000, "tie_word_embeddings": False,
    "torch_dtype": "bfloat16", "transformers_version": "4.40.0.dev0", "vocab_size": 128256,
}  # fmt: skip
ENCODERS: dict[str, dict[str, Any]] = {
    "eurobert-210m": {
        **EUROBERT, "head_dim": 64, "hidden_size": 768, "intermediate_size": 3072, "num_attention_heads": 12,
        "num_hidden_layers": 12, "num_key_value_heads": 12,
    },
    "eurobert-2.1b": {
        **EUROBERT, "hidden_size": 2304, "intermediate_size": 6144, "num_attention_heads": 18,
        "num_hidden_layers": 32, "num_key_value_heads": 6,
    },
}  # fmt: skip
