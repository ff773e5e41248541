"""Llama (Touvron et al., 2023): ``LlamaConfig``."""

from __future__ import annotations

from specs.model import Model
from zoo.configs.activations import read_activation
from zoo.configs.config import Config
from zoo.configs.decoders import attention_of, gated_of, grouped_query, only_block, stack_of, write_common
from zoo.configs.family import ConfigFamily, Data
from zoo.configs.heads import decoder_classes
from zoo.configs.rope import read_rope, write_rope


def _read(config: Config, class_name: str) -> Data:
    d_model = config.int("hidden_size", default=4096)
    heads = config.int("num_attention_heads", default=32)
    width = config.int("head_dim", default=d_model // heads)
    context = config.int("max_position_embeddings", default=2048)
    attention = grouped_query(config, heads=heads, width=width, d_model=d_model)
    attention["bias"] = config.bool("attention_bias", default=False)
    config.ignore("pretraining_tp")
    return {
        "architecture": "decoder",
        "vocab_size": config.int("vocab_size", default=32000),
        "d_model": d_model,
        "context_length": context,
        "position": read_rope(config, width=width, context=context),
        "decoder": {
            "layers": config.int("num_hidden_layers", default=32),
            "block": {
                "kind": "pre_norm",
                "norm": {"kind": "rms_norm", "eps": config.float("rms_norm_eps", default=1e-6)},
                "attention": attention,
                "feed_forward": {
                    "kind": "gated",
                    "hidden": config.int("intermediate_size", default=11008),
                    "activation": read_activation(config, "hidden_act", "silu"),
                    "bias": config.bool("mlp_bias", default=False),
                },
            },
        },
        "initialization": {"kind": "normal", "std": config.float("initializer_range", default=0.02)},
    }


def _write(model: Model) -> Data:
    block = only_block(model)
    attention, feed_forward = attention_of(block), gated_of(block)
    return {
        **write_common(model, block),
        **write_rope(model.position_of(stack_of(model)), width=attention.head_width(model.d_model)),
        "attention_bias": attention.bias.query,
        "mlp_bias": feed_forward.bias,
    }


FAMILIES = (ConfigFamily("llama", _read, _write, decoder_classes("Llama", tied=False)),)
