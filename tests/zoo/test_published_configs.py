"""Configs as they were published, in the spelling of their time, read as the presets of the same models."""

from __future__ import annotations

from typing import Any

import pytest

from specs.canonical import canonical, differences
from specs.load import load
from tests.zoo.published_llamas import LLAMAS
from zoo.configs.config import Config
from zoo.configs.importing import spec_of_config

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

PUBLISHED: dict[str, dict[str, Any]] = {
    **LLAMAS,
    "gpt1": {
        "architectures": ["OpenAIGPTLMHeadModel"], "model_type": "openai-gpt", "afn": "gelu", "attn_pdrop": 0.1,
        "embd_pdrop": 0.1, "initializer_range": 0.02, "layer_norm_epsilon": 1e-05, "n_ctx": 512, "n_embd": 768,
        "n_head": 12, "n_layer": 12, "n_positions": 512, "n_special": 0, "predict_special_tokens": True,
        "resid_pdrop": 0.1, **SUMMARY, "vocab_size": 40478,
    },
    "gpt2": GPT2,
    "distilgpt2": {
        **GPT2, "n_layer": 6, "_num_labels": 1, "id2label": {"0": "LABEL_0"}, "label2id": {"LABEL_0": 0}
    },
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
