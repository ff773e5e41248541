"""What the configs of the decoders that follow Llama have in common."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

from specs.base import Component
from specs.model import Model
from specs.suggest import did_you_mean
from zoo.configs.activations import read_activation
from zoo.configs.config import Config
from zoo.configs.decoders import attention_of, grouped_query, only_block, stack_of, write_common
from zoo.configs.family import Data
from zoo.configs.layers import pattern
from zoo.configs.rope import read_rope, write_rope

FULL, SLIDING = "full_attention", "sliding_attention"
"""The kinds of layers in ``layer_types``."""


@dataclass(frozen=True)
class Defaults:
    """What a family has where a config does not say (``kv_heads``: as many as heads; ``head_dim``: of equal parts).

    A family whose reference rotates whole heads alone has no ``fraction``.
    """

    vocab_size: int = 32000
    hidden_size: int = 4096
    intermediate_size: int = 11008
    layers: int = 32
    heads: int = 32
    kv_heads: int | None = None
    head_dim: int | None = None
    context: int = 2048
    theta: float = 10000.0
    fraction: float | None = None
    eps: float = 1e-6


def read_llama(
    config: Config,
    defaults: Defaults,
    *,
    attention: Mapping[str, Any],
    feed_forward: Mapping[str, Any] | None = None,
    block: Mapping[str, Any] | None = None,
    rope: Mapping[str, Any] | None = None,
) -> Data:
    """The spec of a config with Llama's names, all layers alike.

    ``attention``, ``feed_forward`` and ``block`` are what a family says beyond the sizes, ``rope`` further
    arguments of :func:`read_rope`.
    """
    d_model = config.int("hidden_size", default=defaults.hidden_size)
    heads = config.int("num_attention_heads", default=defaults.heads)
    width = config.int("head_dim", default=defaults.head_dim or d_model // max(heads, 1))
    context = config.int("max_position_embeddings", default=defaults.context)
    kv_heads = None if config.null("num_key_value_heads") else defaults.kv_heads
    shape = grouped_query(config, heads=heads, width=width, d_model=d_model, kv_heads=kv_heads)
    position = read_rope(
        config,
        width=width,
        context=context,
        theta=defaults.theta,
        fraction=defaults.fraction or 1.0,
        **(rope or {}),
    )
    if defaults.fraction is None and "dimensions" in position:
        config.refuse("partial_rotary_factor", "must be 1: the reference rotates whole heads")
    norm = {} if block and "norm" in block else {"norm": rms_norm(config, defaults)}
    return {
        "architecture": "decoder",
        "vocab_size": config.int("vocab_size", default=defaults.vocab_size),
        "d_model": d_model,
        "context_length": context,
        "position": position,
        "decoder": {
            "layers": config.layers("num_hidden_layers", default=defaults.layers),
            "block": {
                "kind": "pre_norm",
                **norm,
                **(block or {}),
                "attention": {**shape, **attention},
                "feed_forward": {
                    "kind": "gated",
                    "hidden": config.int("intermediate_size", default=defaults.intermediate_size),
                    "activation": read_activation(config, "hidden_act", "silu"),
                    "bias": False,
                    **(feed_forward or {}),
                },
            },
        },
        "initialization": {"kind": "normal", "std": config.float("initializer_range", default=0.02)},
    }


def rms_norm(config: Config, defaults: Defaults) -> Data:
    """The norm of a config with rms_norm_eps."""
    return {"kind": "rms_norm", "eps": config.float("rms_norm_eps", default=defaults.eps)}


def read_layer_types(config: Config, default: list[str]) -> list[str]:
    """The kind of every layer; ``default`` is what the other fields come to."""
    types: list[Any] = config.list("layer_types", default=default)
    if len(types) != len(default):
        config.refuse("layer_types", f"must have an entry for each of the {len(default)} layers")
    for kind in types:
        if kind not in (FULL, SLIDING):
            config.refuse(
                "layer_types", "has a kind that is not modelled", did_you_mean(str(kind), [FULL, SLIDING])
            )
    return types


def read_windowed_layers(config: Config, layers: int) -> tuple[int | None, list[bool]]:
    """The window, and which layers have it, of a config with use_sliding_window and max_window_layers (Qwen)."""
    window = config.int("sliding_window", default=None if config.null("sliding_window") else 4096)
    if not config.bool("use_sliding_window", default=False):
        window = None
    first = config.int("max_window_layers", default=28)
    types = read_layer_types(
        config, [SLIDING if window is not None and layer >= first else FULL for layer in range(layers)]
    )
    if window is None and SLIDING in types:
        config.refuse(
            "layer_types", f"has {SLIDING} without a window", "set use_sliding_window and sliding_window"
        )
    return window, [kind == SLIDING for kind in types]


def with_windows(data: Data, window: int | None, windowed: Collection[bool]) -> Data:
    """The spec in which some layers, or all, have a window."""
    attention = {"window": window}
    if not any(windowed):
        return data
    decoder = data["decoder"]
    if all(windowed):
        block = {**decoder["block"], "attention": {**decoder["block"]["attention"], **attention}}
        return {**data, "decoder": {**decoder, "block": block}}
    layers = pattern(["windowed" if each else None for each in windowed])
    return {
        **data,
        "decoder": {**decoder, "layers": layers, "blocks": {"windowed": {"attention": attention}}},
    }


def windows_of(model: Model) -> list[int | None]:
    """The window of every layer."""
    return [attention_of(block).window for block in stack_of(model).layer_blocks()]


def write_windowed_layers(model: Model) -> Data:
    """The fields of :func:`read_windowed_layers`; where windows differ, reading back tells."""
    windows = windows_of(model)
    window = next((each for each in windows if each is not None), None)
    return {
        "use_sliding_window": window is not None,
        "sliding_window": window,
        "max_window_layers": next((i for i, each in enumerate(windows) if each), len(windows)),
        "layer_types": [FULL if each is None else SLIDING for each in windows],
    }


def write_llama(model: Model, feed_forward: Component | None = None) -> Data:
    """The fields that a config has under Llama's names; ``feed_forward`` is what the hidden layer is of (default: the first block's)."""
    block = only_block(model)
    attention = attention_of(block)
    return {
        **write_common(model, block, feed_forward),
        **write_rope(model.position_of(stack_of(model)), width=attention.head_width(model.d_model)),
    }
