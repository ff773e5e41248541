"""StableLM (Bellagente et al., 2024): ``StableLmConfig``."""

from __future__ import annotations

from specs.block import Parallel
from specs.model import Model
from zoo.configs.activations import read_activation
from zoo.configs.config import Config
from zoo.configs.decoders import (
    attention_of,
    eps_of,
    gated_of,
    grouped_query,
    only_block,
    stack_of,
    write_sizes,
)
from zoo.configs.family import ConfigFamily, Data
from zoo.configs.heads import decoder_classes
from zoo.configs.rope import read_rope, rope_of, rotated_part, write_rope


def _read(config: Config, class_name: str) -> Data:
    d_model = config.int("hidden_size", default=2560)
    heads = config.int("num_attention_heads", default=32)
    width, context = d_model // heads, config.int("max_position_embeddings", default=4096)
    eps = config.float("layer_norm_eps", default=1e-5)
    bias = config.bool("use_qkv_bias", default=False)
    attention = grouped_query(config, heads=heads, width=width, d_model=d_model, kv_heads=32)
    attention["bias"] = {"query": bias, "key": bias, "value": bias, "output": False}
    if config.bool("qk_layernorm", default=False):
        norm = {"kind": "layer_norm", "eps": eps, "bias": False}
        attention["qk_norm"] = {"norm": norm, "over": "each_head"}
    return {
        "architecture": "decoder",
        "vocab_size": config.int("vocab_size", default=50304),
        "d_model": d_model,
        "context_length": context,
        "position": read_rope(config, width=width, context=context, fraction=0.25),
        "decoder": {
            "layers": config.layers("num_hidden_layers", default=32),
            "block": {
                "kind": "parallel" if config.bool("use_parallel_residual", default=False) else "pre_norm",
                "norm": {"kind": "layer_norm", "eps": eps},
                "attention": attention,
                "feed_forward": {
                    "kind": "gated",
                    "hidden": config.int("intermediate_size", default=6912),
                    "activation": read_activation(config, "hidden_act", "silu"),
                    "bias": False,
                    "dropout": 0.0,
                },
                "dropout": config.float("hidden_dropout", default=0.0),
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
        **write_sizes(model, block, gated_of(block)),
        "num_key_value_heads": attention.key_value_heads,
        **write_rope(rope, width=width),
        "partial_rotary_factor": rotated_part(rope, width),
        "use_qkv_bias": attention.bias.query,
        "qk_layernorm": attention.qk_norm is not None,
        "use_parallel_residual": isinstance(block, Parallel),
        "layer_norm_eps": eps_of(block.norm),
        "hidden_dropout": block.dropout,
        "attention_dropout": attention.dropout,
    }


CLASSES = decoder_classes("StableLm", tied=False, without=("ForQuestionAnswering",))

FAMILIES = (ConfigFamily("stablelm", _read, _write, CLASSES),)
