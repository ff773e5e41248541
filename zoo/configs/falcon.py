"""Falcon (Almazrouei et al., 2023) in its layouts: 7B, 40B, 11B and RefinedWeb: ``FalconConfig``."""

from __future__ import annotations

from specs.block import Parallel
from specs.model import Model
from specs.position import Alibi
from zoo.configs.activations import read_activation, write_activation
from zoo.configs.config import Config
from zoo.configs.decoders import CONTEXT, attention_of, eps_of, mlp_of, only_block, stack_of, std_of
from zoo.configs.family import ConfigFamily, Data
from zoo.configs.heads import decoder_classes
from zoo.configs.rope import read_rope, write_rope


def _heads(config: Config, heads: int, new: bool) -> Data:
    """Keys and values: the new layout says how many heads they have, the old one whether they have one."""
    kv_heads = config.int("num_kv_heads", "n_head_kv", default=heads)
    multi_query = config.bool("multi_query", default=True)
    if not new and not multi_query and kv_heads != heads:
        config.refuse(
            "num_kv_heads",
            f"must be num_attention_heads, which is {heads}, where neither multi_query nor new_decoder_architecture is true",
        )
    if new:
        return {"kind": "grouped_query", "heads": heads, "kv_heads": kv_heads}
    return {"kind": "multi_query" if multi_query else "multi_head", "heads": heads}


def _block(config: Config, new: bool) -> Data:
    """The kind of block, and how many norms it has."""
    parallel = config.bool("parallel_attn", default=True)
    norms = config.int("num_ln_in_parallel_attn", default=2 if new else 1)
    if new and not parallel:
        config.refuse("parallel_attn", "must be true where new_decoder_architecture is")
    if norms not in ((1, 2) if new else (1,)):
        config.refuse(
            "num_ln_in_parallel_attn",
            f"must be {'1 or 2' if new else '1 where new_decoder_architecture is false'}",
        )
    if not parallel:
        return {"kind": "pre_norm"}
    return {"kind": "parallel", "norms": "separate" if norms == 2 else "shared"}


def _position(config: Config, width: int, context: int) -> Data:
    if config.bool("alibi", default=False):
        config.ignore("rope_theta", "rope_scaling", "rope_parameters")
        return {"kind": "alibi", "scale": width**-0.5, "precision": "bfloat16"}
    position = read_rope(config, width=width, context=context)
    if "dimensions" in position:
        config.refuse("partial_rotary_factor", "must be 1: the reference rotates whole heads")
    return position


def _read(config: Config, class_name: str) -> Data:
    d_model = config.int("n_embed", "hidden_size", default=4544)
    heads = config.int("num_attention_heads", "n_head", default=71)
    context = config.int("max_position_embeddings", default=2048)
    bias = config.bool("bias", default=False)
    new = config.bool("new_decoder_architecture", default=False)
    config.must(
        "apply_residual_connection_post_layernorm", False, "residuals after the norm are not modelled"
    )
    return {
        "architecture": "decoder",
        "vocab_size": config.int("vocab_size", default=65024),
        "d_model": d_model,
        "context_length": context,
        "position": _position(config, d_model // heads, context),
        "decoder": {
            "layers": config.layers("num_hidden_layers", "n_layer", default=32),
            "block": {
                **_block(config, new),
                "norm": {"kind": "layer_norm", "eps": config.float("layer_norm_epsilon", default=1e-5)},
                "attention": {
                    **_heads(config, heads, new),
                    "bias": bias,
                    "dropout": config.float("attention_dropout", default=0.0),
                },
                "feed_forward": {
                    "kind": "mlp",
                    "hidden": config.int("ffn_hidden_size", default=4 * d_model),
                    "activation": read_activation(config, "activation", "gelu"),
                    "bias": bias,
                },
                "dropout": config.float("hidden_dropout", default=0.0),
            },
        },
        "initialization": {"kind": "normal", "std": config.float("initializer_range", default=0.02)},
    }


def _write(model: Model) -> Data:
    block = only_block(model)
    attention, feed_forward = attention_of(block), mlp_of(block)
    position = model.position_of(stack_of(model))
    parallel = isinstance(block, Parallel)
    separate = isinstance(block, Parallel) and block.norms == "separate"
    new = separate or attention.key_value_heads not in (1, attention.heads)
    rope = (
        {} if isinstance(position, Alibi) else write_rope(position, width=attention.head_width(model.d_model))
    )
    return {
        "vocab_size": model.vocab_size,
        "hidden_size": model.d_model,
        "num_hidden_layers": stack_of(model).depth,
        "num_attention_heads": attention.heads,
        "num_kv_heads": attention.key_value_heads
        if new or attention.key_value_heads > 1
        else attention.heads,
        "multi_query": attention.key_value_heads == 1,
        "new_decoder_architecture": new,
        "num_ln_in_parallel_attn": 2 if separate else 1,
        "parallel_attn": parallel,
        "alibi": isinstance(position, Alibi),
        "bias": attention.bias.query,
        "ffn_hidden_size": feed_forward.hidden,
        "activation": write_activation(feed_forward.activation),
        "max_position_embeddings": model.context_length or CONTEXT,
        **rope,
        "layer_norm_epsilon": eps_of(block.norm),
        "hidden_dropout": block.dropout,
        "attention_dropout": attention.dropout,
        **std_of(model),
    }


FAMILIES = (ConfigFamily("falcon", _read, _write, decoder_classes("Falcon", tied=True)),)
