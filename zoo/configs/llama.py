"""Llama (Touvron et al., 2023): ``LlamaConfig``."""

from __future__ import annotations

from specs.model import Model
from zoo.configs.config import Config
from zoo.configs.decoders import attention_of, gated_of, only_block
from zoo.configs.family import ConfigFamily, Data
from zoo.configs.heads import decoder_classes
from zoo.configs.llamas import Defaults, read_llama, write_llama


def _read(config: Config, class_name: str) -> Data:
    config.ignore("max_sequence_length", "is_llama_config")  # Llama 1, SmolLM2; the reference reads neither
    config.must("rope_interleaved", False, "the reference pairs dimension i with i + n/2")
    return read_llama(
        config,
        Defaults(),
        attention={"bias": config.bool("attention_bias", default=False)},
        feed_forward={"bias": config.bool("mlp_bias", default=False)},
    )


def _write(model: Model) -> Data:
    block = only_block(model)
    return {
        **write_llama(model),
        "attention_bias": attention_of(block).bias.query,
        "mlp_bias": gated_of(block).bias,
    }


FAMILIES = (ConfigFamily("llama", _read, _write, decoder_classes("Llama", tied=False)),)
