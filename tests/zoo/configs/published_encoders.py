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
ESM2 = {
    "architectures": ["EsmForMaskedLM"], "attention_probs_dropout_prob": 0.0, "classifier_dropout": None,
    "emb_layer_norm_before": False, "esmfold_config": None, "hidden_act": "gelu", "hidden_dropout_prob": 0.0,
    "initializer_range": 0.02, "is_folding_model": False, "layer_norm_eps": 1e-05, "mask_token_id": 32,
    "max_position_embeddings": 1026, "model_type": "esm", "pad_token_id": 1, "position_embedding_type": "rotary",
    "token_dropout": True, "torch_dtype": "float32", "transformers_version": "4.25.0.dev0", "use_cache": True,
    "vocab_list": None, "vocab_size": 33,
}  # fmt: skip
DPR = {
    "attention_probs_dropout_prob": 0.1, "gradient_checkpointing": False, "hidden_act": "gelu",
    "hidden_dropout_prob": 0.1, "hidden_size": 768, "initializer_range": 0.02, "intermediate_size": 3072,
    "layer_norm_eps": 1e-12, "max_position_embeddings": 512, "model_type": "dpr", "num_attention_heads": 12,
    "num_hidden_layers": 12, "pad_token_id": 0, "position_embedding_type": "absolute", "projection_dim": 0,
    "type_vocab_size": 2, "vocab_size": 30522,
}  # fmt: skip
LAYOUTLM = {
    "attention_probs_dropout_prob": 0.1, "hidden_act": "gelu", "hidden_dropout_prob": 0.1, "initializer_range": 0.02,
    "layer_norm_eps": 1e-12, "max_2d_position_embeddings": 1024, "max_position_embeddings": 512,
    "model_type": "layoutlm", "pad_token_id": 0, "type_vocab_size": 2, "vocab_size": 30522,
}  # fmt: skip
ENCODERS: dict[str, dict[str, Any]] = {
    "dpr-question-encoder-nq": {**DPR, "architectures": ["DPRQuestionEncoder"]},
    "dpr-context-encoder-nq": {**DPR, "architectures": ["DPRContextEncoder"]},
    "dpr-reader-nq": {**DPR, "architectures": ["DPRReader"]},
    "layoutlm-base": {
        **LAYOUTLM, "hidden_size": 768, "intermediate_size": 3072, "num_attention_heads": 12, "num_hidden_layers": 12,
    },
    "layoutlm-large": {
        **LAYOUTLM, "hidden_size": 1024, "intermediate_size": 4096, "num_attention_heads": 16, "num_hidden_layers": 24,
    },
    "mobilebert-uncased": {
        "architectures": ["MobileBertModel"], "attention_probs_dropout_prob": 0.1, "classifier_activation": False,
        "embedding_size": 128, "hidden_act": "relu", "hidden_dropout_prob": 0.0, "hidden_size": 512,
        "initializer_range": 0.02, "intermediate_size": 512, "intra_bottleneck_size": 128,
        "key_query_shared_bottleneck": True, "layer_norm_eps": 1e-12, "max_position_embeddings": 512,
        "model_type": "mobilebert", "normalization_type": "no_norm", "num_attention_heads": 4,
        "num_feedforward_networks": 4, "num_hidden_layers": 24, "pad_token_id": 0,
        "transformers_version": "4.6.0.dev0", "trigram_input": True, "true_hidden_size": 128, "type_vocab_size": 2,
        "use_bottleneck": True, "use_bottleneck_attention": False, "vocab_size": 30522,
    },
    "rembert": {
        "_name_or_path": "artefacts/pt_model", "attention_probs_dropout_prob": 0, "bos_token_id": 312,
        "embedding_dropout_prob": 0, "embedding_size": 256, "eos_token_id": 313, "hidden_act": "gelu",
        "hidden_dropout_prob": 0, "hidden_size": 1152, "initializer_range": 0.02, "input_embedding_size": 256,
        "intermediate_size": 4608, "layer_norm_eps": 1e-12, "max_position_embeddings": 512, "model_type": "rembert",
        "num_attention_heads": 18, "num_hidden_layers": 32, "output_embedding_size": 1664, "pad_token_id": 0,
        "tie_word_embeddings": False, "transformers_version": "4.4.0.dev0", "type_vocab_size": 2, "use_cache": True,
        "vocab_size": 250300,
    },
    "roformer-chinese-base": {
        "architectures": ["RoFormerForMaskedLM"], "attention_probs_dropout_prob": 0.1, "embedding_size": 768,
        "hidden_act": "gelu", "hidden_dropout_prob": 0.1, "hidden_size": 768, "initializer_range": 0.02,
        "intermediate_size": 3072, "max_position_embeddings": 1536, "model_type": "roformer",
        "num_attention_heads": 12, "num_hidden_layers": 12, "pad_token_id": 0, "rotary_value": False,
        "type_vocab_size": 2, "vocab_size": 50000,
    },
    "vit-mae-base-16": {
        "architectures": ["ViTMAEModel"], "attention_probs_dropout_prob": 0.0, "decoder_hidden_size": 512,
        "decoder_intermediate_size": 2048, "decoder_num_attention_heads": 16, "decoder_num_hidden_layers": 8,
        "hidden_act": "gelu", "hidden_dropout_prob": 0.0, "hidden_size": 768, "image_size": 224,
        "initializer_range": 0.02, "intermediate_size": 3072, "layer_norm_eps": 1e-12, "mask_ratio": 0.75,
        "model_type": "vit_mae", "norm_pix_loss": False, "num_attention_heads": 12, "num_channels": 3,
        "num_hidden_layers": 12, "patch_size": 16, "qkv_bias": True, "torch_dtype": "float32",
        "transformers_version": "4.16.0.dev0",
    },
    "eurobert-210m": {
        **EUROBERT, "head_dim": 64, "hidden_size": 768, "intermediate_size": 3072, "num_attention_heads": 12,
        "num_hidden_layers": 12, "num_key_value_heads": 12,
    },
    "eurobert-2.1b": {
        **EUROBERT, "hidden_size": 2304, "intermediate_size": 6144, "num_attention_heads": 18,
        "num_hidden_layers": 32, "num_key_value_heads": 6,
    },
    "esm2-8m": {
        **ESM2, "hidden_size": 320, "intermediate_size": 1280, "num_attention_heads": 20, "num_hidden_layers": 6,
    },
    "esm2-35m": {
        **ESM2, "hidden_size": 480, "intermediate_size": 1920, "num_attention_heads": 20, "num_hidden_layers": 12,
    },
    "esm2-650m": {
        **ESM2, "hidden_size": 1280, "intermediate_size": 5120, "num_attention_heads": 20, "num_hidden_layers": 33,
    },
    "esm2-3b": {
        **ESM2, "hidden_size": 2560, "intermediate_size": 10240, "num_attention_heads": 40, "num_hidden_layers": 36,
    },
    "camembert-base": {
        "architectures": ["CamembertModel"], "attention_probs_dropout_prob": 0.1, "bos_token_id": 5,
        "eos_token_id": 6, "gradient_checkpointing": False, "hidden_act": "gelu", "hidden_dropout_prob": 0.1,
        "hidden_size": 768, "initializer_range": 0.02, "intermediate_size": 3072, "layer_norm_eps": 1e-05,
        "max_position_embeddings": 514, "model_type": "camembert", "num_attention_heads": 12,
        "num_hidden_layers": 12, "output_past": True, "pad_token_id": 1, "position_embedding_type": "absolute",
        "type_vocab_size": 1, "use_cache": True, "vocab_size": 32005,
    },
    "snowflake-arctic-embed-m-v2.0": {
        "architectures": ["GteModel"], "attention_probs_dropout_prob": 0.0,
        "auto_map": {"AutoModel": "modeling_hf_alibaba_nlp_gte.GteModel"}, "classifier_dropout": 0.1,
        "hidden_act": "gelu", "hidden_dropout_prob": 0.1, "hidden_size": 768, "initializer_range": 0.02,
        "intermediate_size": 3072, "layer_norm_eps": 1e-12, "layer_norm_type": "layer_norm",
        "logn_attention_clip1": False, "logn_attention_scale": False, "max_position_embeddings": 8192,
        "model_type": "gte", "num_attention_heads": 12, "num_hidden_layers": 12, "pack_qkv": True,
        "pad_token_id": 1, "position_embedding_type": "rope", "rope_scaling": None, "rope_theta": 160000,
        "torch_dtype": "float32", "transformers_version": "4.39.3", "type_vocab_size": 1, "unpad_inputs": "true",
        "use_memory_efficient_attention": "true", "vocab_size": 250048,
    },
    "deberta-large": {
        "model_type": "deberta", "attention_probs_dropout_prob": 0.1, "hidden_act": "gelu",
        "hidden_dropout_prob": 0.1, "hidden_size": 1024, "initializer_range": 0.02, "intermediate_size": 4096,
        "max_position_embeddings": 512, "relative_attention": True, "pos_att_type": "c2p|p2c",
        "layer_norm_eps": 1e-7, "max_relative_positions": -1, "position_biased_input": False,
        "num_attention_heads": 16, "num_hidden_layers": 24, "type_vocab_size": 0, "vocab_size": 50265,
    },
    "mdeberta-v3-base": {
        "model_type": "deberta-v2", "attention_probs_dropout_prob": 0.1, "hidden_act": "gelu",
        "hidden_dropout_prob": 0.1, "hidden_size": 768, "initializer_range": 0.02, "intermediate_size": 3072,
        "max_position_embeddings": 512, "relative_attention": True, "position_buckets": 256,
        "norm_rel_ebd": "layer_norm", "share_att_key": True, "pos_att_type": "p2c|c2p", "layer_norm_eps": 1e-7,
        "max_relative_positions": -1, "position_biased_input": False, "num_attention_heads": 12,
        "num_hidden_layers": 12, "type_vocab_size": 0, "vocab_size": 251000,
    },
    "all-mpnet-base-v2": {
        "_name_or_path": "microsoft/mpnet-base", "architectures": ["MPNetModel"],
        "attention_probs_dropout_prob": 0.1, "bos_token_id": 0, "eos_token_id": 2, "hidden_act": "gelu",
        "hidden_dropout_prob": 0.1, "hidden_size": 768, "initializer_range": 0.02, "intermediate_size": 3072,
        "layer_norm_eps": 1e-05, "max_position_embeddings": 514, "model_type": "mpnet", "num_attention_heads": 12,
        "num_hidden_layers": 12, "pad_token_id": 1, "relative_attention_num_buckets": 32,
        "transformers_version": "4.8.2", "vocab_size": 30527,
    },
    "neobert": {
        "architectures": ["NeoBERTLMHead"], "classifier_init_range": 0.02, "decoder_init_range": 0.02, "dim_head": 64,
        "embedding_init_range": 0.02, "hidden_size": 768, "intermediate_size": 3072, "max_length": 4096,
        "kwargs": {"classifier_init_range": 0.02, "pretrained_model_name_or_path": "google-bert/bert-base-uncased"},
        "model_type": "neobert", "norm_eps": 1e-05, "num_attention_heads": 12, "num_hidden_layers": 28, "pad_token_id": 0,
        "torch_dtype": "float32", "vocab_size": 30522,
    },
    "nomic-embed-text-v1.5": {
        "activation_function": "swiglu", "architectures": ["NomicBertModel"], "attn_pdrop": 0.0,
        "auto_map": {"AutoModel": "nomic-ai/nomic-bert-2048--modeling_hf_nomic_bert.NomicBertModel"},
        "bos_token_id": None, "causal": False, "dense_seq_output": True, "embd_pdrop": 0.0, "eos_token_id": None,
        "fused_bias_fc": True, "fused_dropout_add_ln": True, "initializer_range": 0.02,
        "layer_norm_epsilon": 1e-12, "max_trained_positions": 2048, "mlp_fc1_bias": False, "mlp_fc2_bias": False,
        "model_type": "nomic_bert", "n_embd": 768, "n_head": 12, "n_inner": 3072, "n_layer": 12,
        "n_positions": 8192, "pad_vocab_size_multiple": 64, "parallel_block": False,
        "parallel_block_tied_norm": False, "prenorm": False, "qkv_proj_bias": False,
        "reorder_and_upcast_attn": False, "resid_pdrop": 0.0, "rotary_emb_base": 1000, "rotary_emb_fraction": 1.0,
        "rotary_emb_interleaved": False, "rotary_emb_scale_base": None, "rotary_scaling_factor": None,
        "scale_attn_by_inverse_layer_idx": False, "scale_attn_weights": True, "summary_activation": None,
        "summary_first_dropout": 0.0, "summary_proj_to_labels": True, "summary_type": "cls_index",
        "summary_use_proj": True, "torch_dtype": "float32", "transformers_version": "4.37.2", "type_vocab_size": 2,
        "use_cache": True, "use_flash_attn": True, "use_rms_norm": False, "use_xentropy": True, "vocab_size": 30528,
    },
}  # fmt: skip
