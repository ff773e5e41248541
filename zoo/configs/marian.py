"""Marian (Junczys-Dowmunt et al., 2018) and Pegasus (Zhang et al., 2019): ``MarianConfig``, ``PegasusConfig``."""

from __future__ import annotations

from specs.model import Model
from zoo.configs.config import Config
from zoo.configs.family import ConfigFamily, Data, HeadClass
from zoo.configs.heads import BODY
from zoo.configs.seq2seq import conditional_generation, read_model, write_model

_POSITION: Data = {"kind": "sinusoidal", "layout": "half_split", "table": True}
_LANGUAGE_MODELING = HeadClass("language_modeling", conditional_generation)


def _marian(config: Config, class_name: str) -> Data:
    data = read_model(config, kind="post_norm", position=_POSITION, embedding_norm=False, vocab_size=58101)
    config.must("share_encoder_decoder_embeddings", True, "encoder, decoder and head share one table")
    config.must("decoder_vocab_size", data["vocab_size"], "encoder and decoder share one table")
    return data


def _write_marian(model: Model) -> Data:
    return {**write_model(model), "decoder_vocab_size": model.vocab_size}


def _pegasus(config: Config, class_name: str) -> Data:
    return read_model(config, kind="pre_norm", position=_POSITION, embedding_norm=False, vocab_size=50265)


FAMILIES = (
    ConfigFamily(
        "marian", _marian, _write_marian, {"MarianMTModel": _LANGUAGE_MODELING, "MarianModel": BODY}
    ),
    ConfigFamily(
        "pegasus",
        _pegasus,
        write_model,
        {"PegasusForConditionalGeneration": _LANGUAGE_MODELING, "PegasusModel": BODY},
    ),
)
