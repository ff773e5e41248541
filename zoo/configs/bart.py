"""BART (Lewis et al., 2019) and mBART (Liu et al., 2020): ``BartConfig``, ``MBartConfig``."""

from __future__ import annotations

from zoo.configs.config import Config
from zoo.configs.family import ConfigFamily, Data
from zoo.configs.seq2seq import classes, read_model, write_model

_POSITION: Data = {"kind": "learned", "offset": 2}


def _bart(config: Config, class_name: str) -> Data:
    return read_model(config, kind="post_norm", position=_POSITION, embedding_norm=True, vocab_size=50265)


def _mbart(config: Config, class_name: str) -> Data:
    return read_model(config, kind="pre_norm", position=_POSITION, embedding_norm=True, vocab_size=50265)


FAMILIES = (
    ConfigFamily("bart", _bart, write_model, classes("Bart", labels=3)),
    ConfigFamily("mbart", _mbart, write_model, classes("MBart", labels=2)),
)
