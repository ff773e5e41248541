"""SmolLM3 (Bakouch et al., 2025): ``SmolLM3Config``."""

from __future__ import annotations

from specs.model import Model
from specs.position import NoPosition
from zoo.configs.config import Config
from zoo.configs.decoders import attention_of, gated_of, only_block, stack_of
from zoo.configs.family import ConfigFamily, Data
from zoo.configs.heads import decoder_classes
from zoo.configs.layers import pattern
from zoo.configs.llamas import (
    FULL,
    SLIDING,
    Defaults,
    read_layer_types,
    read_llama,
    write_llama,
    write_windowed_layers,
)

_DEFAULTS = Defaults(
    vocab_size=128256, hidden_size=2048, layers=36, heads=16, kv_heads=4, context=32768, theta=2000000.0
)


def _read(config: Config, class_name: str) -> Data:
    data = read_llama(
        config,
        _DEFAULTS,
        attention={"bias": config.bool("attention_bias", default=False)},
        feed_forward={"bias": config.bool("mlp_bias", default=False)},
    )
    layers = data["decoder"]["layers"]
    rotated = _read_rotated(config, layers)
    window = config.int("sliding_window")
    using = config.bool("use_sliding_window", default=False) and window is not None
    types = read_layer_types(config, [SLIDING if using and not rope else FULL for rope in rotated])
    if window is None and SLIDING in types:
        config.refuse("layer_types", f"has {SLIDING} without a window", "set sliding_window")
    config.ignore("max_window_layers")  # a leftover of Qwen2's, which the reference does not read
    names = [_NAMES[rope, kind == SLIDING] for rope, kind in zip(rotated, types, strict=True)]
    variants = {"no_rope": {"position": {"kind": "none"}}, "windowed": {"window": window}}
    variants["windowed_no_rope"] = variants["no_rope"] | variants["windowed"]
    blocks = {name: {"attention": variants[name]} for name in variants if name in names}
    return {**data, "decoder": {**data["decoder"], "layers": pattern(names), "blocks": blocks}}


_NAMES = {
    (True, False): None,
    (False, False): "no_rope",
    (True, True): "windowed",
    (False, True): "windowed_no_rope",
}
"""The block of a layer: whether it rotates, and whether it has a window."""


def _read_rotated(config: Config, layers: int) -> list[bool]:
    """Which layers rotate queries and keys."""
    interval = config.int("no_rope_layer_interval", default=4)
    if interval < 1:
        config.refuse("no_rope_layer_interval", "must be at least 1")
    stated = config.list("no_rope_layers", default=[(layer + 1) % interval != 0 for layer in range(layers)])
    if len(stated) < layers or any(each not in (0, 1) for each in stated):
        config.refuse("no_rope_layers", f"must be 0 or 1 for each of the {layers} layers")
    return [bool(each) for each in stated[:layers]]


def _write(model: Model) -> Data:
    block, blocks = only_block(model), stack_of(model).layer_blocks()
    return {
        **write_llama(model),
        **write_windowed_layers(model),
        "no_rope_layers": [int(not isinstance(attention_of(each).position, NoPosition)) for each in blocks],
        "attention_bias": attention_of(block).bias.query,
        "mlp_bias": gated_of(block).bias,
    }


FAMILIES = (ConfigFamily("smollm3", _read, _write, decoder_classes("SmolLM3", tied=True)),)
