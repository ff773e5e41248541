"""OLMo 2 (OLMo team, 2025): ``Olmo2Config``."""

from __future__ import annotations

from specs.model import Model
from zoo.configs.config import Config
from zoo.configs.decoders import attention_of, only_block
from zoo.configs.family import ConfigFamily, Data
from zoo.configs.heads import decoder_classes
from zoo.configs.llamas import Defaults, read_llama, rms_norm, write_llama

_DEFAULTS = Defaults(vocab_size=50304, eps=1e-5)


def _read(config: Config, class_name: str) -> Data:
    attention = {
        "bias": config.bool("attention_bias", default=False),
        "qk_norm": {"norm": rms_norm(config, _DEFAULTS), "over": "width"},
    }
    return read_llama(config, _DEFAULTS, attention=attention, block={"kind": "branch_norm"})


def _write(model: Model) -> Data:
    return {**write_llama(model), "attention_bias": attention_of(only_block(model)).bias.query}


CLASSES = decoder_classes("Olmo2", tied=False, without=("ForTokenClassification", "ForQuestionAnswering"))

FAMILIES = (ConfigFamily("olmo2", _read, _write, CLASSES),)
