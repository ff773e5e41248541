"""ViT (Dosovitskiy et al., 2020): ``ViTConfig``."""

from __future__ import annotations

from typing import Any

from specs.embedding import Patches
from specs.model import Model
from zoo.configs.activations import read_activation, write_activation
from zoo.configs.config import Config
from zoo.configs.decoders import attention_of, eps_of, mlp_of, only_block, stack_of, std_of
from zoo.configs.family import ConfigFamily, Data, HeadClass, UnfitError
from zoo.configs.heads import read_labels, write_labels


def _side(config: Config, name: str, default: int) -> int:
    """The side of a square, which may be given as height and width."""
    value = config.any(name)
    if isinstance(value, list) and len(value) == 2 and value[0] == value[1]:
        value = value[0]
    if value is not None and type(value) is not int:
        config.refuse(name, "must be a whole number", "only square images and patches are modelled")
    return default if value is None else value


def _read(config: Config, class_name: str) -> Data:
    width = config.int("hidden_size", default=768)
    dropout = config.float("hidden_dropout_prob", default=0.0)
    bias = config.bool("qkv_bias", default=True)
    config.must("pooler_output_size", width, "the pooler keeps the width")
    config.ignore("encoder_stride", "pooler_act")  # of the image decoder, and of the pooler
    return {
        "architecture": "encoder",
        "d_model": width,
        "position": {"kind": "learned"},
        "embedding": {
            "kind": "patches",
            "image_size": _side(config, "image_size", 224),
            "patch_size": _side(config, "patch_size", 16),
            "channels": config.int("num_channels", default=3),
            "dropout": dropout,
        },
        "encoder": {
            "layers": config.layers("num_hidden_layers", default=12),
            "block": {
                "kind": "pre_norm",
                "norm": {"kind": "layer_norm", "eps": config.float("layer_norm_eps", default=1e-12)},
                "attention": {
                    "kind": "multi_head",
                    "heads": config.int("num_attention_heads", default=12),
                    "bias": {"query": bias, "key": bias, "value": bias, "output": True},
                    "dropout": config.float("attention_probs_dropout_prob", default=0.0),
                },
                "feed_forward": {
                    "kind": "mlp",
                    "hidden": config.int("intermediate_size", default=3072),
                    "activation": read_activation(config, "hidden_act", "gelu"),
                },
                "dropout": dropout,
            },
        },
        "initialization": {"kind": "normal", "std": config.float("initializer_range", default=0.02)},
    }


def _write(model: Model) -> Data:
    stack, block = stack_of(model), only_block(model)
    embedding, attention, feed_forward = model.embedding_of(stack), attention_of(block), mlp_of(block)
    if not isinstance(embedding, Patches):
        raise UnfitError(f"embedding kind {embedding.kind}")
    return {
        "hidden_size": model.d_model,
        "num_hidden_layers": stack.depth,
        "num_attention_heads": attention.heads,
        "intermediate_size": feed_forward.hidden,
        "hidden_act": write_activation(feed_forward.activation),
        "hidden_dropout_prob": block.dropout,
        "attention_probs_dropout_prob": attention.dropout,
        "layer_norm_eps": eps_of(block.norm),
        "image_size": embedding.image_size,
        "patch_size": embedding.patch_size,
        "num_channels": embedding.channels,
        "qkv_bias": attention.bias.query,
        **std_of(model),
    }


def _read_pooler(config: Config) -> Data:
    return {"activation": read_activation(config, "pooler_act", "tanh")}


def _write_pooler(head: Any) -> Data:
    return {"pooler_act": write_activation(head.activation)}


def _read_classification(config: Config) -> Data:
    return {"labels": read_labels(config)}


CLASSES = {
    "ViTForImageClassification": HeadClass("classification", _read_classification, write_labels),
    "ViTModel": HeadClass("pooler", _read_pooler, _write_pooler),
}

FAMILIES = (ConfigFamily("vit", _read, _write, CLASSES),)
