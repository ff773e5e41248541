"""Phi-1, Phi-1.5 and Phi-2 (Gunasekar et al., 2023): ``PhiConfig``."""

from __future__ import annotations

from specs.model import Model
from zoo.configs.activations import read_activation
from zoo.configs.config import Config
from zoo.configs.decoders import (
    attention_of,
    eps_of,
    grouped_query,
    mlp_of,
    only_block,
    stack_of,
    tokens_of,
    write_sizes,
)
from zoo.configs.family import ConfigFamily, Data
from zoo.configs.heads import decoder_classes
from zoo.configs.rope import read_rope, rope_of, rotated_part, write_rope


def _read(config: Config, class_name: str) -> Data:
    d_model = config.int("hidden_size", default=2048)
    heads = config.int("num_attention_heads", default=32)
    width, context = d_model // heads, config.int("max_position_embeddings", default=2048)
    attention = grouped_query(config, heads=heads, width=width, d_model=d_model)
    norm = {"kind": "layer_norm", "eps": config.float("layer_norm_eps", default=1e-5)}
    if config.bool("qk_layernorm", default=False):
        attention["qk_norm"] = {"norm": norm, "over": "head"}
    return {
        "architecture": "decoder",
        "vocab_size": config.int("vocab_size", default=51200),
        "d_model": d_model,
        "context_length": context,
        "position": read_rope(config, width=width, context=context, fraction=0.5),
        "embedding": {"dropout": config.float("embd_pdrop", default=0.0)},
        "decoder": {
            "layers": config.layers("num_hidden_layers", default=24),
            "block": {
                "kind": "parallel",
                "norm": norm,
                "attention": attention,
                "feed_forward": {
                    "kind": "mlp",
                    "hidden": config.int("intermediate_size", default=8192),
                    "activation": read_activation(config, "hidden_act", "gelu_new"),
                },
                "dropout": config.float("resid_pdrop", default=0.0),
            },
        },
        "initialization": {"kind": "normal", "std": config.float("initializer_range", default=0.02)},
    }


def _write(model: Model) -> Data:
    block = only_block(model)
    attention = attention_of(block)
    rope = rope_of(model.position_of(stack_of(model)))
    width = attention.head_width(model.d_model)
    return {
        **write_sizes(model, block, mlp_of(block)),
        "num_key_value_heads": attention.key_value_heads,
        **write_rope(rope, width=width),
        "partial_rotary_factor": rotated_part(rope, width),
        "qk_layernorm": attention.qk_norm is not None,
        "layer_norm_eps": eps_of(block.norm),
        "resid_pdrop": block.dropout,
        "attention_dropout": attention.dropout,
        "embd_pdrop": tokens_of(model).dropout,
    }


CLASSES = decoder_classes("Phi", tied=False, bias=True, without=("ForQuestionAnswering",))

FAMILIES = (ConfigFamily("phi", _read, _write, CLASSES),)
