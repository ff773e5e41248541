"""OLMo (Groeneveld et al., 2024): ``OlmoConfig``."""

from __future__ import annotations

from specs.model import Model
from zoo.configs.config import Config
from zoo.configs.decoders import attention_of, only_block
from zoo.configs.family import ConfigFamily, Data
from zoo.configs.heads import decoder_classes
from zoo.configs.llamas import Defaults, read_llama, write_llama

_NORM = {"kind": "layer_norm", "eps": 1e-5, "weight": False, "bias": False}


def _read(config: Config, class_name: str) -> Data:
    attention = {
        "bias": config.bool("attention_bias", default=False),
        "clip": config.float("clip_qkv"),
    }
    return read_llama(config, Defaults(vocab_size=50304), attention=attention, block={"norm": _NORM})


def _write(model: Model) -> Data:
    attention = attention_of(only_block(model))
    fields = write_llama(model)
    del fields["rms_norm_eps"]  # fixed
    return {**fields, "attention_bias": attention.bias.query, "clip_qkv": attention.clip}


CLASSES = decoder_classes("Olmo", tied=False, without=("ForTokenClassification", "ForQuestionAnswering"))

FAMILIES = (ConfigFamily("olmo", _read, _write, CLASSES),)
