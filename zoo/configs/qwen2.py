"""Qwen2 (Yang et al., 2024): ``Qwen2Config``."""

from __future__ import annotations

from specs.model import Model
from zoo.configs.config import Config
from zoo.configs.family import ConfigFamily, Data
from zoo.configs.heads import decoder_classes
from zoo.configs.llamas import (
    Defaults,
    read_llama,
    read_windowed_layers,
    with_windows,
    write_llama,
    write_windowed_layers,
)

_DEFAULTS = Defaults(vocab_size=151936, intermediate_size=22016, kv_heads=32, context=32768)
_BIAS = {"query": True, "key": True, "value": True, "output": False}


def _read(config: Config, class_name: str) -> Data:
    config.must("use_mrope", False, "rotary positions of several axes are not modelled")
    data = read_llama(config, _DEFAULTS, attention={"bias": _BIAS})
    return with_windows(data, *read_windowed_layers(config, data["decoder"]["layers"]))


def _write(model: Model) -> Data:
    return {**write_llama(model), **write_windowed_layers(model)}


FAMILIES = (ConfigFamily("qwen2", _read, _write, decoder_classes("Qwen2", tied=False)),)
