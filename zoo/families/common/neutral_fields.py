"""Fields of configs of every family that state nothing about the forward pass."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

NEUTRAL = frozenset(
    [
        "_attn_implementation", "_attn_implementation_autoset", "_commit_hash", "_name_or_path", "_num_labels",
        "architectures", "attn_implementation", "auto_map", "bad_words_ids", "begin_suppress_tokens",
        "bos_token_id", "chunk_size_feed_forward", "cls_token_id", "decoder_start_token_id", "diversity_penalty",
        "do_sample", "dtype", "early_stopping", "encoder_no_repeat_ngram_size", "eos_token_id",
        "exponential_decay_length_penalty", "finetuning_task", "forced_bos_token_id", "forced_eos_token_id",
        "gradient_checkpointing", "id2label", "initializer_range", "is_encoder_decoder",
        "keys_to_ignore_at_inference", "label2id", "length_penalty", "mask_token_id", "max_length", "min_length",
        "model_type", "name_or_path", "no_repeat_ngram_size", "num_beam_groups", "num_beams", "num_labels",
        "num_return_sequences", "output_attentions", "output_hidden_states", "output_past", "output_scores",
        "pad_token_id", "prefix", "pretraining_tp", "problem_type", "remove_invalid_values", "repetition_penalty",
        "return_dict", "return_dict_in_generate", "sbert_ce_default_activation_function", "sentence_transformers",
        "sep_token_id", "suppress_tokens", "task_specific_params", "temperature", "tf_legacy_loss",
        "tie_encoder_decoder", "tie_word_embeddings", "tokenizer_class", "top_k", "top_p", "torch_dtype",
        "torchscript", "transformers_version", "typical_p", "unk_token_id", "use_bfloat16", "use_cache",
        "xla_device",
    ]
)  # fmt: skip
"""Fields of every family that do not affect the forward pass, or that the head reads."""


OF_EVERY_CONFIG: Mapping[str, Any] = {
    "pruned_heads": {},
    "add_cross_attention": False,
    "is_decoder": False,
    "dropout": 0.0,
}
"""Fields that transformers 4 wrote into every config, with the values that state nothing."""
