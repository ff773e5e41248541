"""Qwen3 (Yang et al., 2025), the dense models: ``Qwen3Config``."""

from __future__ import annotations

from specs.model import Model
from zoo.configs.config import Config
from zoo.configs.decoders import attention_of, only_block
from zoo.configs.family import ConfigFamily, Data
from zoo.configs.heads import decoder_classes
from zoo.configs.llamas import (
    Defaults,
    read_llama,
    read_windowed_layers,
    rms_norm,
    with_windows,
    write_llama,
    write_windowed_layers,
)

_DEFAULTS = Defaults(vocab_size=151936, intermediate_size=22016, kv_heads=32, head_dim=128, context=32768)


def _read(config: Config, class_name: str) -> Data:
    attention = {
        "bias": config.bool("attention_bias", default=False),
        "qk_norm": {"norm": rms_norm(config, _DEFAULTS), "over": "head"},
    }
    data = read_llama(config, _DEFAULTS, attention=attention)
    return with_windows(data, *read_windowed_layers(config, data["decoder"]["layers"]))


def _write(model: Model) -> Data:
    bias = attention_of(only_block(model)).bias.query
    return {**write_llama(model), **write_windowed_layers(model), "attention_bias": bias}


FAMILIES = (ConfigFamily("qwen3", _read, _write, decoder_classes("Qwen3", tied=False)),)
