"""GPT-Neo (Black et al., 2021): ``GPTNeoConfig``."""

from __future__ import annotations

from specs.model import Model
from zoo.configs.activations import read_activation, write_activation
from zoo.configs.config import Config
from zoo.configs.decoders import attention_of, eps_of, mlp_of, only_block, stack_of, std_of, tokens_of
from zoo.configs.family import ConfigFamily, Data
from zoo.configs.heads import SUMMARY, decoder_classes
from zoo.configs.layers import pattern

WINDOW = 256
_TYPES = {"global": None, "local": "local"}


def _layers(config: Config) -> list[str]:
    """The type of every layer: ``attention_types`` has them as [[[types], times], ...]."""
    types = config.list("attention_types", default=[[["global", "local"], 12]])
    config.ignore("attention_layers")  # which follow from them
    depth = config.layers("num_layers", "num_hidden_layers", default=24)
    layers: list[str] = []
    for group in types:
        if not (isinstance(group, list) and len(group) == 2 and isinstance(group[0], list)):
            config.refuse("attention_types", "must be a list of [[types], times]")
        if type(group[1]) is not int or not all(name in list(_TYPES) for name in group[0]):
            config.refuse("attention_types", "is not modelled", "it may have types global and local")
        if len(group[0]) * group[1] > depth:
            config.refuse("attention_types", f"must come to num_layers, which is {depth}")
        layers += group[0] * group[1]
    if len(layers) != depth:
        config.refuse("attention_types", f"must come to num_layers, which is {depth}; it has {len(layers)}")
    return layers


def _read(config: Config, class_name: str) -> Data:
    d_model = config.int("hidden_size", default=2048)
    dropout = config.float("resid_dropout", default=0.0)
    layers = _layers(config)
    window = config.int("window_size", default=WINDOW)
    config.ignore("classifier_dropout")
    config.ignore(*SUMMARY)
    return {
        "architecture": "decoder",
        "vocab_size": config.int("vocab_size", default=50257),
        "d_model": d_model,
        "context_length": config.int("max_position_embeddings", default=2048),
        "position": {"kind": "learned"},
        "embedding": {"dropout": config.float("embed_dropout", default=0.0)},
        "decoder": {
            "layers": pattern([_TYPES[layer] for layer in layers]),
            "block": {
                "kind": "pre_norm",
                "norm": {"kind": "layer_norm", "eps": config.float("layer_norm_epsilon", default=1e-5)},
                "attention": {
                    "kind": "multi_head",
                    "heads": config.int("num_heads", "num_attention_heads", default=16),
                    "bias": {"query": False, "key": False, "value": False, "output": True},
                    "scale": 1.0,
                    "dropout": config.float("attention_dropout", default=0.0),
                },
                "feed_forward": {
                    "kind": "mlp",
                    "hidden": config.int("intermediate_size", default=4 * d_model),
                    "activation": read_activation(config, "activation_function", "gelu_new"),
                },
                "dropout": dropout,
            },
            **({"blocks": {"local": {"attention": {"window": window}}}} if "local" in layers else {}),
        },
        "initialization": {"kind": "normal", "std": config.float("initializer_range", default=0.02)},
    }


def _write(model: Model) -> Data:
    block = only_block(model)
    attention, feed_forward = attention_of(block), mlp_of(block)
    windows = [attention_of(layer).window for layer in stack_of(model).layer_blocks()]
    types = ["global" if window is None else "local" for window in windows]
    return {
        "vocab_size": model.vocab_size,
        "hidden_size": model.d_model,
        "num_layers": stack_of(model).depth,
        "num_heads": attention.heads,
        "intermediate_size": feed_forward.hidden,
        "activation_function": write_activation(feed_forward.activation),
        "max_position_embeddings": model.context_length,
        "attention_types": [[types, 1]],
        "attention_layers": types,
        "window_size": next((window for window in windows if window is not None), WINDOW),
        "layer_norm_epsilon": eps_of(block.norm),
        "resid_dropout": block.dropout,
        "attention_dropout": attention.dropout,
        "embed_dropout": tokens_of(model).dropout,
        **std_of(model),
    }


FAMILIES = (ConfigFamily("gpt_neo", _read, _write, decoder_classes("GPTNeo", tied=True)),)
