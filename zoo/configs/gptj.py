"""GPT-J (Wang and Komatsuzaki, 2021): ``GPTJConfig``."""

from __future__ import annotations

from specs.model import Model
from zoo.configs.activations import read_activation, write_activation
from zoo.configs.config import Config
from zoo.configs.decoders import (
    CONTEXT,
    attention_of,
    eps_of,
    mlp_of,
    only_block,
    stack_of,
    std_of,
    tokens_of,
)
from zoo.configs.family import ConfigFamily, Data
from zoo.configs.heads import SUMMARY, decoder_classes
from zoo.configs.rope import rope_of


def _read(config: Config, class_name: str) -> Data:
    d_model = config.int("n_embd", "hidden_size", default=4096)
    dropout = config.float("resid_pdrop", default=0.0)
    config.must("rotary", True, "GPT-J without rotary positions is of old releases")
    config.must("scale_attn_weights", True, "the reference divides by the root of the head's width")
    config.ignore("n_ctx")
    config.ignore(*SUMMARY)
    return {
        "architecture": "decoder",
        "vocab_size": config.int("vocab_size", default=50400),
        "d_model": d_model,
        "context_length": config.int("n_positions", "max_position_embeddings", default=2048),
        "position": {
            "kind": "rope",
            "dimensions": config.int("rotary_dim", default=64),
            "layout": "interleaved",
        },
        "embedding": {"dropout": config.float("embd_pdrop", default=0.0)},
        "decoder": {
            "layers": config.layers("n_layer", "num_hidden_layers", default=28),
            "block": {
                "kind": "parallel",
                "norm": {"kind": "layer_norm", "eps": config.float("layer_norm_epsilon", default=1e-5)},
                "attention": {
                    "kind": "multi_head",
                    "heads": config.int("n_head", "num_attention_heads", default=16),
                    "bias": False,
                    "dropout": config.float("attn_pdrop", default=0.0),
                },
                "feed_forward": {
                    "kind": "mlp",
                    "hidden": config.int("n_inner", default=4 * d_model),
                    "activation": read_activation(config, "activation_function", "gelu_new"),
                },
                "dropout": dropout,
            },
        },
        "initialization": {"kind": "normal", "std": config.float("initializer_range", default=0.02)},
    }


def _write(model: Model) -> Data:
    block = only_block(model)
    attention, feed_forward = attention_of(block), mlp_of(block)
    rope = rope_of(model.position_of(stack_of(model)))
    return {
        "vocab_size": model.vocab_size,
        "n_embd": model.d_model,
        "n_layer": stack_of(model).depth,
        "n_head": attention.heads,
        "n_positions": model.context_length or CONTEXT,
        "n_inner": feed_forward.hidden,
        "rotary_dim": rope.dimensions or attention.head_width(model.d_model),
        "activation_function": write_activation(feed_forward.activation),
        "layer_norm_epsilon": eps_of(block.norm),
        "resid_pdrop": block.dropout,
        "attn_pdrop": attention.dropout,
        "embd_pdrop": tokens_of(model).dropout,
        **std_of(model),
    }


CLASSES = decoder_classes("GPTJ", tied=False, bias=True, without=("ForTokenClassification",))

FAMILIES = (ConfigFamily("gptj", _read, _write, CLASSES),)
