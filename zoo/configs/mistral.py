"""Mistral (Jiang et al., 2023): ``MistralConfig``."""

from __future__ import annotations

from specs.model import Model
from zoo.configs.config import Config
from zoo.configs.decoders import attention_of, only_block
from zoo.configs.family import ConfigFamily, Data
from zoo.configs.heads import decoder_classes
from zoo.configs.llamas import FULL, SLIDING, Defaults, read_layer_types, read_llama, write_llama

_DEFAULTS = Defaults(intermediate_size=14336, kv_heads=8, context=131072)


def _read(config: Config, class_name: str) -> Data:
    window = config.int("sliding_window", default=None if config.null("sliding_window") else 4096)
    data = read_llama(config, _DEFAULTS, attention={"bias": False, "window": window})
    kind = FULL if window is None else SLIDING
    every = [kind] * data["decoder"]["layers"]
    if read_layer_types(config, every) != every:
        config.refuse("layer_types", f"must be {kind} throughout: the reference has one mask for all layers")
    return data


def _write(model: Model) -> Data:
    return {**write_llama(model), "sliding_window": attention_of(only_block(model)).window}


FAMILIES = (ConfigFamily("mistral", _read, _write, decoder_classes("Mistral", tied=False)),)
