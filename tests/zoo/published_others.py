"""Configs of encoders and Gemma, as they were published."""

from __future__ import annotations

from typing import Any

BERT = {
    "attention_probs_dropout_prob": 0.1, "hidden_act": "gelu", "hidden_dropout_prob": 0.1, "hidden_size": 768,
    "initializer_range": 0.02, "intermediate_size": 3072, "max_position_embeddings": 512,
    "num_attention_heads": 12, "num_hidden_layers": 12, "type_vocab_size": 2,
}  # fmt: skip
SMALL = {"hidden_size": 384, "intermediate_size": 1536}
VIT = {
    **{name: value for name, value in BERT.items() if name not in ("max_position_embeddings", "type_vocab_size")},
    "attention_probs_dropout_prob": 0.0, "hidden_dropout_prob": 0.0, "add_cross_attention": False, "bos_token_id": None,
    "id2label": {"0": "LABEL_0", "1": "LABEL_1"}, "image_size": 384, "is_decoder": False, "layer_norm_eps": 1e-12,
    "model_type": "vit", "num_beams": 1, "num_channels": 3, "patch_size": 16, "qkv_bias": False, "top_k": 50,
}  # fmt: skip
TROCR = {
    "activation_dropout": 0.0, "activation_function": "gelu", "add_cross_attention": True, "attention_dropout": 0.0,
    "bos_token_id": 0, "classifier_dropout": 0.0, "cross_attention_hidden_size": 768, "d_model": 1024,
    "decoder_attention_heads": 16, "decoder_ffn_dim": 4096, "decoder_layerdrop": 0.0, "decoder_layers": 12,
    "decoder_start_token_id": 2, "dropout": 0.1, "eos_token_id": 2, "init_std": 0.02, "is_decoder": True,
    "layernorm_embedding": True, "max_position_embeddings": 512, "model_type": "trocr", "num_hidden_layers": 12,
    "pad_token_id": 1, "scale_embedding": False, "use_cache": False, "use_learned_position_embeddings": True,
    "vocab_size": 50265,
}  # fmt: skip
OTHERS: dict[str, dict[str, Any]] = {
    "trocr-base": {
        "architectures": ["VisionEncoderDecoderModel"], "decoder": TROCR, "encoder": VIT, "is_encoder_decoder": True,
        "model_type": "vision-encoder-decoder", "tie_word_embeddings": False, "transformers_version": None,
    },
    "bert-base": {
        **BERT, "architectures": ["BertModel"], "gradient_checkpointing": False, "layer_norm_eps": 1e-12,
        "model_type": "bert", "pad_token_id": 0, "position_embedding_type": "absolute",
        "transformers_version": "4.6.0.dev0", "use_cache": True, "vocab_size": 30522,
    },
    "bert-base-multilingual-cased": {
        **BERT, "architectures": ["BertModel"], "directionality": "bidi", "layer_norm_eps": 1e-12,
        "model_type": "bert", "pad_token_id": 0, "pooler_fc_size": 768, "pooler_num_attention_heads": 12,
        "pooler_num_fc_layers": 3, "pooler_size_per_head": 128, "pooler_type": "first_token_transform",
        "vocab_size": 119547,
    },
    "minilm-l12": {
        **BERT, **SMALL, "_name_or_path": "microsoft/MiniLM-L12-H384-uncased", "architectures": ["BertModel"],
        "gradient_checkpointing": False, "layer_norm_eps": 1e-12, "model_type": "bert", "pad_token_id": 0,
        "position_embedding_type": "absolute", "transformers_version": "4.8.2", "use_cache": True,
        "vocab_size": 30522,
    },
    "bge-small-en": {
        **BERT, **SMALL, "architectures": ["BertModel"], "classifier_dropout": None,
        "id2label": {"0": "LABEL_0"}, "label2id": {"LABEL_0": 0}, "layer_norm_eps": 1e-12, "model_type": "bert",
        "pad_token_id": 0, "position_embedding_type": "absolute", "torch_dtype": "float32", "use_cache": True,
        "transformers_version": "4.30.0", "vocab_size": 30522,
    },
    "roberta-base": {
        **BERT, "architectures": ["RobertaModel"], "bos_token_id": 0, "eos_token_id": 2, "layer_norm_eps": 1e-05,
        "max_position_embeddings": 514, "model_type": "roberta", "pad_token_id": 1, "type_vocab_size": 1,
        "vocab_size": 50265,
    },
    "xlm-roberta-base": {
        **BERT, "architectures": ["XLMRobertaModel"], "bos_token_id": 0, "eos_token_id": 2,
        "layer_norm_eps": 1e-05, "max_position_embeddings": 514, "model_type": "xlm-roberta",
        "output_past": True, "pad_token_id": 1, "position_embedding_type": "absolute", "type_vocab_size": 1,
        "transformers_version": "4.17.0.dev0", "use_cache": True, "vocab_size": 250002,
    },
    "distilbert-base": {
        "activation": "gelu", "architectures": ["DistilBertModel"], "attention_dropout": 0.1, "dim": 768,
        "dropout": 0.1, "finetuning_task": None, "hidden_dim": 3072, "initializer_range": 0.02,
        "max_position_embeddings": 512, "model_type": "distilbert", "n_heads": 12, "n_layers": 6,
        "num_labels": 2, "output_attentions": False, "output_hidden_states": False, "output_past": True,
        "pad_token_id": 0, "pruned_heads": {}, "qa_dropout": 0.1, "seq_classif_dropout": 0.2,
        "sinusoidal_pos_embds": False, "tie_weights_": True, "torchscript": False, "use_bfloat16": False,
        "vocab_size": 30522, "xla_device": None,
    },
    "electra-small": {
        **BERT, "architectures": ["ElectraModel"], "embedding_size": 128, "hidden_size": 256,
        "intermediate_size": 1024, "layer_norm_eps": 1e-12, "model_type": "electra", "num_attention_heads": 4,
        "pad_token_id": 0, "position_embedding_type": "absolute", "summary_activation": "gelu",
        "summary_last_dropout": 0.1, "summary_type": "first", "summary_use_proj": True, "vocab_size": 30522,
    },
    "albert-base-v2": {
        **BERT, "architectures": ["AlbertModel"], "attention_probs_dropout_prob": 0, "bos_token_id": 2,
        "classifier_dropout_prob": 0.1, "down_scale_factor": 1, "embedding_size": 128, "eos_token_id": 3,
        "gap_size": 0, "hidden_act": "gelu_new", "hidden_dropout_prob": 0, "inner_group_num": 1,
        "layer_norm_eps": 1e-12, "model_type": "albert", "net_structure_type": 0, "num_hidden_groups": 1,
        "num_memory_blocks": 0, "pad_token_id": 0, "vocab_size": 30000,
    },
    "modernbert-base": {
        "architectures": ["ModernBertModel"], "attention_bias": False, "attention_dropout": 0.0,
        "bos_token_id": 50281, "classifier_activation": "gelu", "classifier_bias": False,
        "classifier_dropout": 0.0, "classifier_pooling": "mean", "cls_token_id": 50281, "decoder_bias": True,
        "deterministic_flash_attn": False, "embedding_dropout": 0.0, "eos_token_id": 50282,
        "global_attn_every_n_layers": 3, "global_rope_theta": 160000.0, "gradient_checkpointing": False,
        "hidden_activation": "gelu", "hidden_size": 768, "initializer_cutoff_factor": 2.0,
        "initializer_range": 0.02, "intermediate_size": 1152, "layer_norm_eps": 1e-05, "local_attention": 128,
        "local_rope_theta": 10000.0, "max_position_embeddings": 8192, "mlp_bias": False, "mlp_dropout": 0.0,
        "model_type": "modernbert", "norm_bias": False, "norm_eps": 1e-05, "num_attention_heads": 12,
        "num_hidden_layers": 22, "pad_token_id": 50283, "position_embedding_type": "absolute",
        "sep_token_id": 50282, "tie_word_embeddings": True, "torch_dtype": "float32",
        "transformers_version": "4.47.0.dev0", "vocab_size": 50368,
    },
    "beit-base-16": {
        "architectures": ["BeitForImageClassification"], "attention_probs_dropout_prob": 0.0,
        "auxiliary_channels": 256, "auxiliary_concat_input": False, "auxiliary_loss_weight": 0.4,
        "auxiliary_num_convs": 1, "drop_path_rate": 0.1, "hidden_act": "gelu", "hidden_dropout_prob": 0.0,
        "hidden_size": 768, "id2label": {str(i): f"LABEL_{i}" for i in range(1000)}, "image_size": 224,
        "initializer_range": 0.02, "intermediate_size": 3072, "layer_norm_eps": 1e-12,
        "layer_scale_init_value": 0.1, "model_type": "beit", "num_attention_heads": 12, "num_channels": 3,
        "num_hidden_layers": 12, "out_indices": [3, 5, 7, 11], "patch_size": 16, "pool_scales": [1, 2, 3, 6],
        "semantic_loss_ignore_index": 255, "use_absolute_position_embeddings": False,
        "use_auxiliary_head": True, "use_mask_token": False, "use_mean_pooling": True,
        "use_relative_position_bias": True, "use_shared_relative_position_bias": False, "vocab_size": 8192,
    },
    "dinov2-base": {
        "apply_layernorm": True, "architectures": ["Dinov2Model"], "attention_probs_dropout_prob": 0.0,
        "drop_path_rate": 0.0, "hidden_act": "gelu", "hidden_dropout_prob": 0.0, "hidden_size": 768,
        "image_size": 518, "initializer_range": 0.02, "layer_norm_eps": 1e-06, "layerscale_value": 1.0,
        "mlp_ratio": 4, "model_type": "dinov2", "num_attention_heads": 12, "num_channels": 3,
        "num_hidden_layers": 12, "out_features": ["stage12"], "out_indices": [12], "patch_size": 14,
        "qkv_bias": True, "reshape_hidden_states": True,
        "stage_names": ["stem", *(f"stage{i}" for i in range(1, 13))], "torch_dtype": "float32",
        "transformers_version": "4.32.0.dev0", "use_swiglu_ffn": False,
    },
    "clip-vit-l14-text": {
        "_name_or_path": "openai/clip-vit-large-patch14", "architectures": ["CLIPTextModel"],
        "attention_dropout": 0.0, "bos_token_id": 0, "dropout": 0.0, "eos_token_id": 2,
        "hidden_act": "quick_gelu", "hidden_size": 768, "initializer_factor": 1.0, "initializer_range": 0.02,
        "intermediate_size": 3072, "layer_norm_eps": 1e-05, "max_position_embeddings": 77,
        "model_type": "clip_text_model", "num_attention_heads": 12, "num_hidden_layers": 12, "pad_token_id": 1,
        "projection_dim": 768, "torch_dtype": "float32", "transformers_version": "4.22.0.dev0",
        "vocab_size": 49408,
    },
    "gemma-2b": {
        "architectures": ["GemmaForCausalLM"], "attention_bias": False, "attention_dropout": 0.0,
        "bos_token_id": 2, "eos_token_id": 1, "head_dim": 256, "hidden_act": "gelu", "hidden_size": 2048,
        "initializer_range": 0.02, "intermediate_size": 16384, "max_position_embeddings": 8192,
        "model_type": "gemma", "num_attention_heads": 8, "num_hidden_layers": 18, "num_key_value_heads": 1,
        "pad_token_id": 0, "rms_norm_eps": 1e-06, "rope_scaling": None, "rope_theta": 10000.0,
        "torch_dtype": "bfloat16", "transformers_version": "4.38.0.dev0", "use_cache": True, "vocab_size": 256000,
    },
    "gemma2-9b": {
        "architectures": ["Gemma2ForCausalLM"], "attention_bias": False, "attention_dropout": 0.0,
        "attn_logit_softcapping": 50.0, "bos_token_id": 2, "cache_implementation": "hybrid", "eos_token_id": 1,
        "final_logit_softcapping": 30.0, "head_dim": 256, "hidden_act": "gelu_pytorch_tanh",
        "hidden_activation": "gelu_pytorch_tanh", "hidden_size": 3584, "initializer_range": 0.02,
        "intermediate_size": 14336, "max_position_embeddings": 8192, "model_type": "gemma2",
        "num_attention_heads": 16, "num_hidden_layers": 42, "num_key_value_heads": 8, "pad_token_id": 0,
        "query_pre_attn_scalar": 256, "rms_norm_eps": 1e-06, "rope_theta": 10000.0, "sliding_window": 4096,
        "sliding_window_size": 4096, "torch_dtype": "float32", "transformers_version": "4.42.0.dev0",
        "use_cache": True, "vocab_size": 256000,
    },
    "gemma3-1b": {
        "architectures": ["Gemma3ForCausalLM"], "attention_bias": False, "attention_dropout": 0.0,
        "attn_logit_softcapping": None, "bos_token_id": 2, "cache_implementation": "hybrid", "eos_token_id": 1,
        "final_logit_softcapping": None, "head_dim": 256, "hidden_activation": "gelu_pytorch_tanh",
        "hidden_size": 1152, "initializer_range": 0.02, "intermediate_size": 6912,
        "max_position_embeddings": 32768, "model_type": "gemma3_text", "num_attention_heads": 4,
        "num_hidden_layers": 26, "num_key_value_heads": 1, "pad_token_id": 0, "query_pre_attn_scalar": 256,
        "rms_norm_eps": 1e-06, "rope_local_base_freq": 10000, "rope_scaling": None, "rope_theta": 1000000,
        "sliding_window": 512, "sliding_window_pattern": 6, "torch_dtype": "bfloat16",
        "transformers_version": "4.50.0.dev0", "use_cache": True, "vocab_size": 262144,
    },
}  # fmt: skip
