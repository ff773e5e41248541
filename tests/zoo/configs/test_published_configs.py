"""Configs as they were published, in the spelling of their time, read as the presets of the same models."""

from __future__ import annotations

from typing import Any

import pytest

from specs.forms.canonical import canonical, differences
from specs.language.load import load
from tests.zoo.configs.published_dense import DENSE
from tests.zoo.configs.published_encoders import ENCODERS
from tests.zoo.configs.published_hybrids import HYBRIDS
from tests.zoo.configs.published_llamas import LLAMAS
from tests.zoo.configs.published_mixtures import MIXTURES
from tests.zoo.configs.published_others import OTHERS
from tests.zoo.configs.published_recent import RECENT
from tests.zoo.configs.published_state_spaces import STATE_SPACES
from zoo.configs.importing import spec_of_config
from zoo.families.common.config import Config

SUMMARY = {
    "summary_activation": None,
    "summary_first_dropout": 0.1,
    "summary_proj_to_labels": True,
    "summary_type": "cls_index",
    "summary_use_proj": True,
}
GPT2 = {
    "architectures": ["GPT2LMHeadModel"], "model_type": "gpt2", "activation_function": "gelu_new", "attn_pdrop": 0.1,
    "bos_token_id": 50256, "embd_pdrop": 0.1, "eos_token_id": 50256, "initializer_range": 0.02,
    "layer_norm_epsilon": 1e-05, "n_ctx": 1024, "n_embd": 768, "n_head": 12, "n_layer": 12, "n_positions": 1024,
    "resid_pdrop": 0.1, **SUMMARY, "vocab_size": 50257,
    "task_specific_params": {"text-generation": {"do_sample": True, "max_length": 50}},
}  # fmt: skip
GPT_NEO = {
    "architectures": ["GPTNeoForCausalLM"], "model_type": "gpt_neo", "activation_function": "gelu_new",
    "attention_dropout": 0, "attention_layers": ["global", "local"] * 6, "attention_types": [[["global", "local"], 6]],
    "bos_token_id": 50256, "embed_dropout": 0, "eos_token_id": 50256, "gradient_checkpointing": False,
    "hidden_size": 768, "initializer_range": 0.02, "intermediate_size": None, "layer_norm_epsilon": 1e-05,
    "max_position_embeddings": 2048, "num_heads": 12, "num_layers": 12, "resid_dropout": 0, **SUMMARY,
    "transformers_version": "4.9.0.dev0", "use_cache": True, "vocab_size": 50257, "window_size": 256,
}  # fmt: skip
PYTHIA = {
    "architectures": ["GPTNeoXForCausalLM"], "model_type": "gpt_neox", "bos_token_id": 0, "eos_token_id": 0,
    "hidden_act": "gelu", "hidden_size": 512, "initializer_range": 0.02, "intermediate_size": 2048,
    "layer_norm_eps": 1e-05, "max_position_embeddings": 2048, "num_attention_heads": 8, "num_hidden_layers": 6,
    "rotary_emb_base": 10000, "rotary_pct": 0.25, "tie_word_embeddings": False, "torch_dtype": "float16",
    "transformers_version": "4.24.0", "use_cache": True, "use_parallel_residual": True, "vocab_size": 50304,
}  # fmt: skip
OPT = {
    "_name_or_path": "opt-125m", "architectures": ["OPTForCausalLM"], "model_type": "opt",
    "activation_dropout": 0.0, "activation_function": "relu", "attention_dropout": 0.0, "bos_token_id": 2,
    "do_layer_norm_before": True, "dropout": 0.1, "eos_token_id": 2, "ffn_dim": 3072, "hidden_size": 768,
    "init_std": 0.02, "layerdrop": 0.0, "max_position_embeddings": 2048, "num_attention_heads": 12,
    "num_hidden_layers": 12, "pad_token_id": 1, "torch_dtype": "float16", "transformers_version": "4.20.0.dev0",
    "use_cache": True, "vocab_size": 50272, "word_embed_proj_dim": 768, "prefix": "</s>",
}  # fmt: skip
FALCON = {
    "architectures": ["FalconForCausalLM"], "model_type": "falcon", "alibi": False,
    "apply_residual_connection_post_layernorm": False, "attention_dropout": 0.0, "bias": False, "bos_token_id": 11,
    "auto_map": {"AutoConfig": "configuration_falcon.FalconConfig"}, "eos_token_id": 11, "hidden_dropout": 0.0,
    "hidden_size": 4544, "initializer_range": 0.02, "layer_norm_epsilon": 1e-05, "multi_query": True,
    "new_decoder_architecture": False, "num_attention_heads": 71, "num_hidden_layers": 32, "parallel_attn": True,
    "torch_dtype": "bfloat16", "transformers_version": "4.27.4", "use_cache": True, "vocab_size": 65024,
}  # fmt: skip
PHI = {
    "architectures": ["PhiForCausalLM"], "model_type": "phi", "attention_dropout": 0.0, "bos_token_id": None,
    "embd_pdrop": 0.0, "eos_token_id": None, "hidden_act": "gelu_new", "hidden_size": 2048,
    "initializer_range": 0.02, "intermediate_size": 8192, "layer_norm_eps": 1e-05, "max_position_embeddings": 2048,
    "num_attention_heads": 32, "num_hidden_layers": 24, "num_key_value_heads": None, "partial_rotary_factor": 0.5,
    "qk_layernorm": False, "resid_pdrop": 0.0, "rope_scaling": None, "rope_theta": 10000.0,
    "tie_word_embeddings": False, "torch_dtype": "float32", "transformers_version": "4.37.0", "use_cache": True,
    "vocab_size": 51200,
}  # fmt: skip
STABLELM = {
    "architectures": ["StableLmForCausalLM"], "model_type": "stablelm", "attention_dropout": 0.0,
    "bos_token_id": 0, "eos_token_id": 0, "hidden_act": "silu", "hidden_dropout": 0.0, "hidden_size": 2560,
    "initializer_range": 0.02, "intermediate_size": 6912, "layer_norm_eps": 1e-05, "max_position_embeddings": 4096,
    "num_attention_heads": 32, "num_hidden_layers": 32, "num_key_value_heads": 32, "partial_rotary_factor": 0.25,
    "rope_scaling": None, "rope_theta": 10000, "tie_word_embeddings": False, "torch_dtype": "bfloat16",
    "transformers_version": "4.38.0", "use_cache": True, "use_qkv_bias": False, "vocab_size": 50304,
}  # fmt: skip

LABELS = {f"LABEL_{i}": i for i in range(3)}
THREE_LABELS = {"id2label": {str(i): label for label, i in LABELS.items()}, "label2id": LABELS}
T5 = {
    "architectures": ["T5WithLMHeadModel"], "model_type": "t5", "d_ff": 2048, "d_kv": 64, "d_model": 512,
    "decoder_start_token_id": 0, "dropout_rate": 0.1, "eos_token_id": 1, "initializer_factor": 1.0,
    "is_encoder_decoder": True, "layer_norm_epsilon": 1e-06, "n_positions": 512, "num_heads": 8, "num_layers": 6,
    "output_past": True, "pad_token_id": 0, "relative_attention_num_buckets": 32,
    "task_specific_params": {"summarization": {"early_stopping": True, "prefix": "summarize: "}},
    "vocab_size": 32128,
}  # fmt: skip
FLAN_T5 = {
    **T5, "architectures": ["T5ForConditionalGeneration"], "d_ff": 1024, "feed_forward_proj": "gated-gelu",
    "num_decoder_layers": 8, "num_heads": 6, "num_layers": 8, "relative_attention_max_distance": 128,
    "tie_word_embeddings": False, "transformers_version": "4.23.1", "use_cache": True,
}  # fmt: skip
BART = {
    "_num_labels": 3, "activation_dropout": 0.1, "activation_function": "gelu", "add_bias_logits": False,
    "add_final_layer_norm": False, "architectures": ["BartModel"], "attention_dropout": 0.1, "bos_token_id": 0,
    "classif_dropout": 0.1, "classifier_dropout": 0.0, "d_model": 1024, "decoder_attention_heads": 16,
    "decoder_ffn_dim": 4096, "decoder_layerdrop": 0.0, "decoder_layers": 12, "decoder_start_token_id": 2,
    "dropout": 0.1, "early_stopping": True, "encoder_attention_heads": 16, "encoder_ffn_dim": 4096,
    "encoder_layerdrop": 0.0, "encoder_layers": 12, "eos_token_id": 2, "forced_bos_token_id": 0,
    "forced_eos_token_id": 2, "gradient_checkpointing": False, **THREE_LABELS, "init_std": 0.02,
    "is_encoder_decoder": True, "max_position_embeddings": 1024, "model_type": "bart", "no_repeat_ngram_size": 3,
    "normalize_before": False, "num_beams": 4, "num_hidden_layers": 12, "pad_token_id": 1, "scale_embedding": False,
    "task_specific_params": {"summarization": {"max_length": 128}}, "torch_dtype": "float32",
    "transformers_version": "4.7.0.dev0", "use_cache": True, "vocab_size": 50265,
}  # fmt: skip
MARIAN = {
    "_num_labels": 3, "activation_dropout": 0.0, "activation_function": "swish", "add_bias_logits": False,
    "add_final_layer_norm": False, "architectures": ["MarianMTModel"], "attention_dropout": 0.0,
    "bad_words_ids": [[58100]], "bos_token_id": 0, "classif_dropout": 0.0, "classifier_dropout": 0.0, "d_model": 512,
    "decoder_attention_heads": 8, "decoder_ffn_dim": 2048, "decoder_layerdrop": 0.0, "decoder_layers": 6,
    "decoder_start_token_id": 58100, "dropout": 0.1, "encoder_attention_heads": 8, "encoder_ffn_dim": 2048,
    "encoder_layerdrop": 0.0, "encoder_layers": 6, "eos_token_id": 0, "gradient_checkpointing": False,
    **THREE_LABELS, "init_std": 0.02, "is_encoder_decoder": True, "max_length": 512, "max_position_embeddings": 512,
    "model_type": "marian", "normalize_before": False, "normalize_embedding": False, "num_beams": 6,
    "num_hidden_layers": 6, "pad_token_id": 58100, "scale_embedding": True, "static_position_embeddings": True,
    "transformers_version": "4.9.0.dev0", "use_cache": True, "vocab_size": 58101,
}  # fmt: skip
WHISPER = {
    "activation_dropout": 0.0, "activation_function": "gelu", "architectures": ["WhisperForConditionalGeneration"],
    "attention_dropout": 0.0, "begin_suppress_tokens": [220, 50257], "bos_token_id": 50257, "d_model": 384,
    "decoder_attention_heads": 6, "decoder_ffn_dim": 1536, "decoder_layerdrop": 0.0, "decoder_layers": 4,
    "decoder_start_token_id": 50258, "dropout": 0.0, "encoder_attention_heads": 6, "encoder_ffn_dim": 1536,
    "encoder_layerdrop": 0.0, "encoder_layers": 4, "eos_token_id": 50257,
    "forced_decoder_ids": [[1, 50259], [2, 50359], [3, 50363]], "init_std": 0.02, "is_encoder_decoder": True,
    "max_length": 448, "max_source_positions": 1500, "max_target_positions": 448, "model_type": "whisper",
    "num_hidden_layers": 4, "num_mel_bins": 80, "pad_token_id": 50257, "scale_embedding": False,
    "suppress_tokens": [1, 2, 7], "torch_dtype": "float32", "transformers_version": "4.27.0.dev0", "use_cache": True,
    "vocab_size": 51865,
}  # fmt: skip
VIT = {
    "architectures": ["ViTForImageClassification"], "model_type": "vit", "attention_probs_dropout_prob": 0.0,
    "hidden_act": "gelu", "hidden_dropout_prob": 0.0, "hidden_size": 768,
    "id2label": {str(i): f"class {i}" for i in range(1000)}, "image_size": 224, "initializer_range": 0.02,
    "intermediate_size": 3072, "label2id": {f"class {i}": i for i in range(1000)}, "layer_norm_eps": 1e-12,
    "num_attention_heads": 12, "num_channels": 3, "num_hidden_layers": 12, "patch_size": 16, "qkv_bias": True,
    "transformers_version": "4.13.0.dev0",
}  # fmt: skip

PUBLISHED: dict[str, dict[str, Any]] = {
    **LLAMAS,
    **DENSE,
    **HYBRIDS,
    **STATE_SPACES,
    **MIXTURES,
    **ENCODERS,
    **OTHERS, **RECENT,
    "t5-small": T5,
    "t5-11b": {**T5, "d_ff": 65536, "d_kv": 128, "d_model": 1024, "num_heads": 128, "num_layers": 24},
    "flan-t5-small": FLAN_T5,
    "mt5-small": {
        **FLAN_T5, "architectures": ["MT5ForConditionalGeneration"], "model_type": "mt5", "vocab_size": 250112,
        "tokenizer_class": "T5Tokenizer",
    },
    "bart-large-cnn": {
        **BART, "architectures": ["BartForConditionalGeneration"], "force_bos_token_to_be_generated": True,
        "length_penalty": 2.0, "max_length": 142, "min_length": 56, "normalize_embedding": True, "prefix": " ",
        "extra_pos_embeddings": 2, "output_past": True, "static_position_embeddings": False, "vocab_size": 50264,
    },
    "bart-large-mnli": {
        **BART, "architectures": ["BartForSequenceClassification"], "normalize_embedding": True,
        "id2label": {"0": "contradiction", "1": "neutral", "2": "entailment"},
    },
    "mbart-large-cc25": {
        **BART, "activation_dropout": 0.0, "add_final_layer_norm": True, "model_type": "mbart",
        "architectures": ["MBartForConditionalGeneration"], "attention_dropout": 0.0, "max_length": 1024,
        "normalize_before": True, "normalize_embedding": True, "num_beams": 5, "output_past": True,
        "scale_embedding": True, "static_position_embeddings": False, "vocab_size": 250027,
    },
    "opus-mt-en-de": MARIAN,
    "pegasus-large": {
        **BART, "activation_function": "relu", "add_final_layer_norm": True, "model_type": "pegasus",
        "architectures": ["PegasusForConditionalGeneration"], "decoder_layers": 16, "decoder_start_token_id": 0,
        "encoder_layers": 16, "eos_token_id": 1, "extra_pos_embeddings": 1, "length_penalty": 0.8,
        "force_bos_token_to_be_generated": False, "max_length": 256, "normalize_before": True,
        "normalize_embedding": False, "num_beams": 8, "num_hidden_layers": 16, "pad_token_id": 0,
        "scale_embedding": True, "static_position_embeddings": True, "vocab_size": 96103,
    },
    "whisper-tiny": WHISPER,
    "whisper-large-v3": {
        **WHISPER, "apply_spec_augment": False, "classifier_proj_size": 256, "d_model": 1280,
        "decoder_attention_heads": 20, "decoder_ffn_dim": 5120, "decoder_layers": 32, "encoder_attention_heads": 20,
        "encoder_ffn_dim": 5120, "encoder_layers": 32, "mask_feature_length": 10, "mask_feature_min_masks": 0,
        "mask_feature_prob": 0.0, "mask_time_length": 10, "mask_time_min_masks": 2, "mask_time_prob": 0.05,
        "median_filter_width": 7, "num_hidden_layers": 32, "num_mel_bins": 128, "use_weighted_layer_sum": False,
        "vocab_size": 51866,
    },
    "vit-base-16": VIT,
    "deit-tiny-16": {**VIT, "hidden_size": 192, "intermediate_size": 768, "num_attention_heads": 3},
    "gpt1": {
        "architectures": ["OpenAIGPTLMHeadModel"], "model_type": "openai-gpt", "afn": "gelu", "attn_pdrop": 0.1,
        "embd_pdrop": 0.1, "initializer_range": 0.02, "layer_norm_epsilon": 1e-05, "n_ctx": 512, "n_embd": 768,
        "n_head": 12, "n_layer": 12, "n_positions": 512, "n_special": 0, "predict_special_tokens": True,
        "resid_pdrop": 0.1, **SUMMARY, "vocab_size": 40478,
    },
    "gpt2": GPT2,
    "distilgpt2": {**GPT2, "n_layer": 6, "_num_labels": 1, "id2label": {"0": "LABEL_0"}, "label2id": {"LABEL_0": 0}},
    "gpt-neo-125m": GPT_NEO,
    "gpt-neo-2.7b": {
        **GPT_NEO, "hidden_size": 2560, "num_heads": 20, "num_layers": 32,
        "attention_layers": ["global", "local"] * 16, "attention_types": [[["global", "local"], 16]],
    },
    "gpt-j-6b": {
        "architectures": ["GPTJForCausalLM"], "model_type": "gptj", "activation_function": "gelu_new",
        "attn_pdrop": 0.0, "bos_token_id": 50256, "embd_pdrop": 0.0, "eos_token_id": 50256,
        "gradient_checkpointing": False, "initializer_range": 0.02, "layer_norm_epsilon": 1e-05, "n_embd": 4096,
        "n_head": 16, "n_inner": None, "n_layer": 28, "n_positions": 2048, "rotary": True, "rotary_dim": 64,
        "scale_attn_weights": True, **SUMMARY, "tie_word_embeddings": False, "tokenizer_class": "GPT2Tokenizer",
        "transformers_version": "4.18.0.dev0", "use_cache": True, "vocab_size": 50400,
    },
    "pythia-70m": PYTHIA,
    "pythia-2.8b": {
        **PYTHIA, "hidden_size": 2560, "intermediate_size": 10240, "num_attention_heads": 32, "num_hidden_layers": 32
    },
    "pythia-12b": {
        **PYTHIA, "hidden_size": 5120, "intermediate_size": 20480, "num_attention_heads": 40, "num_hidden_layers": 36,
        "vocab_size": 50688,
    },
    "gpt-neox-20b": {
        **{key: value for key, value in PYTHIA.items() if key != "use_parallel_residual"},
        "attention_probs_dropout_prob": 0, "hidden_dropout_prob": 0, "hidden_act": "gelu_fast", "hidden_size": 6144,
        "intermediate_size": 24576, "num_attention_heads": 64, "num_hidden_layers": 44, "vocab_size": 50432,
    },
    "opt-125m": OPT,
    "opt-350m": {
        **OPT, "do_layer_norm_before": False, "ffn_dim": 4096, "hidden_size": 1024, "num_attention_heads": 16,
        "num_hidden_layers": 24, "word_embed_proj_dim": 512,
    },
    "bloom-560m": {
        "architectures": ["BloomForCausalLM"], "model_type": "bloom", "attention_dropout": 0.0,
        "apply_residual_connection_post_layernorm": False, "attention_softmax_in_fp32": True,
        "bias_dropout_fusion": True, "bos_token_id": 1, "eos_token_id": 2, "hidden_dropout": 0.0,
        "initializer_range": 0.02, "layer_norm_epsilon": 1e-05, "masked_softmax_fusion": True, "n_embed": 1024,
        "n_inner": None, "n_layer": 24, "num_attention_heads": 16, "offset_alibi": 100, "pad_token_id": 3,
        "pretraining_tp": 1, "seq_length": 2048, "skip_bias_add": True, "skip_bias_add_qkv": False,
        "slow_but_exact": False, "transformers_version": "4.20.0", "unk_token_id": 0, "use_cache": True,
        "vocab_size": 250880,
    },
    "falcon-7b": FALCON,
    "falcon-40b": {
        **FALCON, "hidden_size": 8192, "new_decoder_architecture": True, "num_attention_heads": 128,
        "num_hidden_layers": 60, "num_kv_heads": 8,
    },
    "falcon-rw-1b": {
        **FALCON, "alibi": True, "bias": True, "hidden_size": 2048, "multi_query": False, "num_attention_heads": 32,
        "num_hidden_layers": 24, "parallel_attn": False, "vocab_size": 50304,
    },
    "phi-1": PHI,
    "phi-2": {
        **PHI, "bos_token_id": 50256, "eos_token_id": 50256, "hidden_size": 2560, "intermediate_size": 10240,
        "num_hidden_layers": 32, "num_key_value_heads": 32, "partial_rotary_factor": 0.4, "resid_pdrop": 0.1,
        "torch_dtype": "float16",
    },
    "stablelm-3b-4e1t": STABLELM,
    "stablelm-2-1.6b": {
        **STABLELM, "hidden_size": 2048, "intermediate_size": 5632, "num_hidden_layers": 24, "use_qkv_bias": True,
        "vocab_size": 100352,
    },
    "stablelm-2-12b": {
        **STABLELM, "hidden_size": 5120, "intermediate_size": 13824, "num_hidden_layers": 40,
        "num_key_value_heads": 8, "qk_layernorm": True, "use_parallel_residual": True, "vocab_size": 100352,
    },
}  # fmt: skip


@pytest.mark.parametrize("name", PUBLISHED)
def test_it_reads_as_the_preset(name: str) -> None:
    preset = load(name)
    imported = spec_of_config(Config(PUBLISHED[name], "config.json"), name=name)
    assert list(differences(canonical(preset), canonical(imported))) == []
    assert imported.context_length == preset.context_length
    assert imported.initialization == preset.initialization
