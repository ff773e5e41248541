"""The default models of transformers.js' pipelines (version 4.2), each with the config of the checkpoint that it was made from.

No copy of some of these configs was at hand.  ``unsure`` says which values they have from other models of the same series.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tests.zoo.configs.test_published_configs import PUBLISHED

Data = dict[str, Any]


@dataclass(frozen=True)
class Expressed:
    """A default model that a spec expresses; ``narrow`` are the sizes of a small copy, and ``like`` is a preset that has its
    architecture, without its head and at other sizes where ``differs``."""

    model: str
    like: str
    config: Data
    narrow: Data
    differs: bool = False
    unsure: str = ""


@dataclass(frozen=True)
class Refused:
    """A default model that no spec expresses, and words of what is missing."""

    model: str
    config: Data
    missing: str


def _labels(*names: str) -> Data:
    """The classes of a head, as configs list them."""
    return {
        "id2label": {str(place): name for place, name in enumerate(names)},
        "label2id": {name: place for place, name in enumerate(names)},
    }


_SENTIMENTS = _labels("NEGATIVE", "POSITIVE")
_ENTAILMENT = _labels("ENTAILMENT", "NEUTRAL", "CONTRADICTION")
_ENTITIES = _labels("O", *(f"{side}-{kind}" for kind in ("DATE", "PER", "ORG", "LOC") for side in ("B", "I")))
_KEYWORDS = _labels(
    *("yes", "no", "up", "down", "left", "right", "on", "off", "stop", "go", "_silence_", "_unknown_")
)

_DISTILBERT = PUBLISHED["distilbert-base"]
_WAV2VEC2: Data = {
    "activation_dropout": 0.0, "apply_spec_augment": True, "architectures": ["Wav2Vec2ForSequenceClassification"],
    "attention_dropout": 0.1, "bos_token_id": 1, "classifier_proj_size": 256, "codevector_dim": 256,
    "contrastive_logits_temperature": 0.1, "conv_bias": False, "conv_dim": [512] * 7,
    "conv_kernel": [10, 3, 3, 3, 3, 2, 2], "conv_stride": [5, 2, 2, 2, 2, 2, 2], "ctc_loss_reduction": "sum",
    "ctc_zero_infinity": False, "diversity_loss_weight": 0.1, "do_stable_layer_norm": False, "eos_token_id": 2,
    "feat_extract_activation": "gelu", "feat_extract_norm": "group", "feat_proj_dropout": 0.1, "final_dropout": 0.0,
    "freeze_feat_extract_train": True, "hidden_act": "gelu", "hidden_dropout": 0.1, "hidden_size": 768,
    "initializer_range": 0.02, "intermediate_size": 3072, "layer_norm_eps": 1e-05, "layerdrop": 0.05,
    "mask_channel_length": 10, "mask_channel_prob": 0.0, "mask_feature_length": 10, "mask_feature_prob": 0.0,
    "mask_time_length": 10, "mask_time_prob": 0.05, "model_type": "wav2vec2", "num_attention_heads": 12,
    "num_codevector_groups": 2, "num_codevectors_per_group": 320, "num_conv_pos_embedding_groups": 16,
    "num_conv_pos_embeddings": 128, "num_feat_extract_layers": 7, "num_hidden_layers": 12, "num_negatives": 100,
    "pad_token_id": 0, "proj_codevector_dim": 256, "use_weighted_layer_sum": True, "vocab_size": 32, **_KEYWORDS,
}  # fmt: skip
_CLIP: Data = {
    "architectures": ["CLIPModel"], "initializer_factor": 1.0, "logit_scale_init_value": 2.6592, "model_type": "clip",
    "projection_dim": 512, "torch_dtype": "float32", "transformers_version": None,
    "text_config": {
        **PUBLISHED["clip-vit-l14-text"], "architectures": None, "hidden_size": 512, "intermediate_size": 2048,
        "num_attention_heads": 8, "projection_dim": 512,
    },
    "vision_config": {
        "attention_dropout": 0.0, "dropout": 0.0, "hidden_act": "quick_gelu", "hidden_size": 768, "image_size": 224,
        "initializer_factor": 1.0, "initializer_range": 0.02, "intermediate_size": 3072, "layer_norm_eps": 1e-05,
        "model_type": "clip_vision_model", "num_attention_heads": 12, "num_channels": 3, "num_hidden_layers": 12,
        "patch_size": 32, "projection_dim": 512,
    },
}  # fmt: skip
_OWLVIT: Data = {
    **{key: value for key, value in _CLIP.items() if not key.endswith("_config")}, "model_type": "owlvit",
    "architectures": ["OwlViTForObjectDetection"], "text_config_dict": None, "vision_config_dict": None,
    "text_config": {**_CLIP["text_config"], "max_position_embeddings": 16, "model_type": "owlvit_text_model"},
    "vision_config": {**_CLIP["vision_config"], "image_size": 768, "model_type": "owlvit_vision_model"},
}  # fmt: skip
_DINOV3: Data = {
    "apply_layernorm": True, "architectures": ["DINOv3ViTModel"], "attention_dropout": 0.0, "drop_path_rate": 0.0,
    "hidden_act": "gelu", "hidden_size": 384, "image_size": 224, "initializer_range": 0.02, "intermediate_size": 1536,
    "key_bias": False, "layer_norm_eps": 1e-05, "layerscale_value": 1.0, "mlp_bias": True, "model_type": "dinov3_vit",
    "num_attention_heads": 6, "num_channels": 3, "num_hidden_layers": 12, "num_register_tokens": 4, "patch_size": 16,
    "pos_embed_jitter": None, "pos_embed_rescale": 2.0, "pos_embed_shift": None, "proj_bias": True,
    "query_bias": True, "reshape_hidden_states": True, "rope_theta": 100.0, "torch_dtype": "float32",
    "use_gated_mlp": False, "value_bias": True,
}  # fmt: skip
_OF_CLASSES = ("architectures", "id2label", "label2id")
_VIT_GPT2: Data = {
    "architectures": ["VisionEncoderDecoderModel"], "bos_token_id": 50256, "decoder_start_token_id": 50256,
    "eos_token_id": 50256, "is_encoder_decoder": True, "model_type": "vision-encoder-decoder", "pad_token_id": 50256,
    "tie_word_embeddings": False, "torch_dtype": "float32", "transformers_version": None,
    "encoder": {key: value for key, value in PUBLISHED["vit-base-16"].items() if key not in _OF_CLASSES},
    "decoder": {
        **PUBLISHED["gpt2"], "add_cross_attention": True, "decoder_start_token_id": 50256, "is_decoder": True,
        "n_inner": None, "pad_token_id": 50256, "reorder_and_upcast_attn": False, "scale_attn_weights": True,
        "scale_attn_by_inverse_layer_idx": False,
    },
}  # fmt: skip
_ETTIN: Data = {
    **PUBLISHED["modernbert-base"], "architectures": ["ModernBertForMaskedLM"], "hidden_size": 384,
    "intermediate_size": 576, "local_rope_theta": 160000.0, "max_position_embeddings": 7999, "num_attention_heads": 6,
    "num_hidden_layers": 10,
}  # fmt: skip

_NARROW_DISTILBERT = {
    "dim": 12, "n_layers": 2, "n_heads": 3, "hidden_dim": 17, "vocab_size": 61, "max_position_embeddings": 23
}  # fmt: skip
_NARROW = {
    "hidden_size": 24, "num_hidden_layers": 2, "num_attention_heads": 3, "intermediate_size": 17, "vocab_size": 61,
    "max_position_embeddings": 23,
}  # fmt: skip
_NARROW_IMAGES = {
    "hidden_size": 24, "num_hidden_layers": 2, "num_attention_heads": 3, "intermediate_size": 17, "image_size": 14,
    "patch_size": 7,
}  # fmt: skip
_NARROW_PAIR = {
    "d_model": 24, "encoder_layers": 2, "decoder_layers": 3, "encoder_attention_heads": 3, "decoder_attention_heads": 3,
    "encoder_ffn_dim": 17, "decoder_ffn_dim": 17, "vocab_size": 61,
}  # fmt: skip
_NARROW_TOKENS = {"bos_token_id": 0, "eos_token_id": 2, "pad_token_id": 1, "decoder_start_token_id": 2}
_NARROW_T5 = {
    "d_ff": 17, "d_kv": 5, "d_model": 12, "num_layers": 2, "num_decoder_layers": 2, "num_heads": 3, "vocab_size": 61
}  # fmt: skip

DEFAULTS: dict[str, Expressed | Refused] = {
    "text-classification": Expressed(
        "Xenova/distilbert-base-uncased-finetuned-sst-2-english", "distilbert-base",
        {**_DISTILBERT, **_SENTIMENTS, "architectures": ["DistilBertForSequenceClassification"]},
        _NARROW_DISTILBERT,
    ),
    "token-classification": Expressed(
        "Xenova/bert-base-multilingual-cased-ner-hrl", "bert-base-multilingual-cased",
        {**PUBLISHED["bert-base-multilingual-cased"], **_ENTITIES, "architectures": ["BertForTokenClassification"]},
        _NARROW,
    ),
    "question-answering": Expressed(
        "Xenova/distilbert-base-cased-distilled-squad", "distilbert-base",
        {**_DISTILBERT, "architectures": ["DistilBertForQuestionAnswering"], "vocab_size": 28996},
        _NARROW_DISTILBERT, differs=True,
    ),
    "fill-mask": Expressed(
        "onnx-community/ettin-encoder-32m-ONNX", "modernbert-base", _ETTIN,
        {**_NARROW, "bos_token_id": 1, "cls_token_id": 1, "eos_token_id": 2, "sep_token_id": 2, "pad_token_id": 0},
        differs=True,
        unsure="the base of local rotations and the number of positions, taken from Ettin's decoders",
    ),
    "summarization": Expressed(
        "Xenova/distilbart-cnn-6-6", "distilbart-cnn-12-6",
        {**PUBLISHED["bart-large-cnn"], "decoder_layers": 6, "encoder_layers": 6, "num_hidden_layers": 6},
        {**_NARROW_PAIR, "max_position_embeddings": 23},
        differs=True,
    ),
    "translation": Expressed(
        "Xenova/t5-small", "t5-small",
        {**PUBLISHED["t5-small"], "architectures": ["T5ForConditionalGeneration"]},
        _NARROW_T5,
    ),
    "text2text-generation": Expressed("Xenova/flan-t5-small", "flan-t5-small", PUBLISHED["flan-t5-small"], _NARROW_T5),
    "text-generation": Expressed(
        "onnx-community/Qwen3-0.6B-ONNX", "qwen3-0.6b",
        {**PUBLISHED["qwen3-0.6b"], "eos_token_id": 151645},
        {**_NARROW, "num_key_value_heads": 1, "head_dim": 10, "bos_token_id": 1, "eos_token_id": 2},
    ),
    "zero-shot-classification": Expressed(
        "Xenova/distilbert-base-uncased-mnli", "distilbert-base",
        {**_DISTILBERT, **_ENTAILMENT, "architectures": ["DistilBertForSequenceClassification"]},
        _NARROW_DISTILBERT,
    ),
    "audio-classification": Expressed(
        "Xenova/wav2vec2-base-superb-ks", "wav2vec2-base-960h", _WAV2VEC2,
        {
            "hidden_size": 24, "num_hidden_layers": 2, "num_attention_heads": 3, "intermediate_size": 17,
            "conv_dim": [8, 8], "conv_kernel": [10, 3], "conv_stride": [5, 2], "num_conv_pos_embeddings": 8,
            "num_conv_pos_embedding_groups": 4, "num_feat_extract_layers": 2, "classifier_proj_size": 9,
        },
        unsure="fields that only training reads",
    ),
    "zero-shot-audio-classification": Refused(
        "Xenova/clap-htsat-unfused",
        {"model_type": "clap", "architectures": ["ClapModel"], "text_config": {}, "audio_config": {}},
        "attention within windows that shift from layer to layer (HTSAT)",
    ),
    "automatic-speech-recognition": Expressed(
        "Xenova/whisper-tiny.en", "whisper-tiny",
        {**PUBLISHED["whisper-tiny"], "vocab_size": 51864, "pad_token_id": 50256, "bos_token_id": 50256,
         "eos_token_id": 50256, "decoder_start_token_id": 50257, "forced_decoder_ids": [[1, 50362]]},
        {**_NARROW_PAIR, **_NARROW_TOKENS, "num_mel_bins": 5, "max_source_positions": 23, "max_target_positions": 31},
        differs=True,
    ),
    "text-to-audio": Refused(
        "onnx-community/Supertonic-TTS-ONNX",
        {"model_type": "supertonic", "architectures": ["SupertonicForConditionalGeneration"]},
        "speech from text by flow matching",
    ),
    "image-to-text": Expressed(
        "Xenova/vit-gpt2-image-captioning", "vit-gpt2", _VIT_GPT2,
        {
            "encoder": _NARROW_IMAGES,
            "decoder": {
                "vocab_size": 47, "n_embd": 24, "n_layer": 2, "n_head": 4, "n_positions": 18, "n_inner": 31,
                **_NARROW_TOKENS,
            },
            **_NARROW_TOKENS,
        },
        unsure="fields of generation in the parts",
    ),
    "image-classification": Expressed(
        "Xenova/vit-base-patch16-224", "vit-base-16", PUBLISHED["vit-base-16"], _NARROW_IMAGES
    ),
    "image-segmentation": Refused(
        "Xenova/detr-resnet-50-panoptic",
        {"model_type": "detr", "architectures": ["DetrForSegmentation"], "backbone": "resnet50"},
        "a convolutional network that reads images (ResNet)",
    ),
    "background-removal": Refused(
        "Xenova/modnet", {"model_type": "modnet"}, "a network of convolutions alone (MobileNetV2 and its decoder)"
    ),
    "zero-shot-image-classification": Expressed(
        "Xenova/clip-vit-base-patch32", "clip-vit-b32", _CLIP,
        {
            "projection_dim": 9,
            "text_config": {**_NARROW, "hidden_size": 21, "eos_token_id": 60, "projection_dim": 9},
            "vision_config": {**_NARROW_IMAGES, "projection_dim": 9},
        },
    ),
    "object-detection": Refused(
        "Xenova/detr-resnet-50",
        {"model_type": "detr", "architectures": ["DetrForObjectDetection"], "backbone": "resnet50"},
        "a decoder of trained queries, each of which gives a class and a box",
    ),
    "zero-shot-object-detection": Expressed(
        "Xenova/owlvit-base-patch32", "owlvit-base-32", _OWLVIT,
        {
            "projection_dim": 21,
            "text_config": {**_NARROW, "hidden_size": 21, "max_position_embeddings": 16},
            "vision_config": _NARROW_IMAGES,
        },
        unsure="fields of generation in the parts",
    ),
    "document-question-answering": Refused(
        "Xenova/donut-base-finetuned-docvqa",
        {
            "model_type": "vision-encoder-decoder", "architectures": ["VisionEncoderDecoderModel"],
            "encoder": {"model_type": "donut-swin"}, "decoder": {"model_type": "mbart"},
        },
        "images whose width and resolution change between layers",
    ),
    "image-to-image": Refused(
        "Xenova/swin2SR-classical-sr-x2-64",
        {"model_type": "swin2sr", "architectures": ["Swin2SRForImageSuperResolution"]},
        "an enlarged image as the output",
    ),
    "depth-estimation": Refused(
        "onnx-community/depth-anything-v2-small",
        {"model_type": "depth_anything", "architectures": ["DepthAnythingForDepthEstimation"]},
        "the outputs of several layers that convolutions fuse into an image (DPT)",
    ),
    "feature-extraction": Expressed(
        "onnx-community/all-MiniLM-L6-v2-ONNX", "minilm-l6",
        {**PUBLISHED["minilm-l12"], "num_hidden_layers": 6},
        _NARROW,
    ),
    "image-feature-extraction": Expressed(
        "onnx-community/dinov3-vits16-pretrain-lvd1689m-ONNX", "dinov3-small-16", _DINOV3, _NARROW_IMAGES
    ),
}  # fmt: skip
"""Tasks, in the client's order, with their default models."""
