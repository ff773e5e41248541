"""ELECTRA (Clark et al., 2020): ``ElectraConfig``."""

from __future__ import annotations

from specs.model import Model
from zoo.configs.activations import read_activation
from zoo.configs.config import Config
from zoo.configs.encoders import classification, masked, of_tokens, read_bert, read_norm, write_bert
from zoo.configs.family import ConfigFamily, Data, HeadClass
from zoo.configs.heads import BODY


def _read(config: Config, class_name: str) -> Data:
    config.ignore("classifier_dropout")  # of some heads
    config.ignore(*(f"summary_{name}" for name in ("activation", "last_dropout", "type", "use_proj")))
    body = read_bert(config, d_model=256, heads=4, hidden=1024)
    width = config.int("embedding_size", default=128)
    if width != body["d_model"]:
        body["embedding"]["width"] = width
    return body


def _write(model: Model) -> Data:
    return {**write_bert(model), "embedding_size": model.embedding_width}


def _masked(config: Config) -> Data:
    return {"activation": "gelu", "norm": read_norm(config)}


def _detecting(config: Config) -> Data:
    return {"activation": read_activation(config, "hidden_act", "gelu")}


CLASSES = {
    "ElectraModel": BODY,
    "ElectraForMaskedLM": masked(_masked),
    "ElectraForPreTraining": HeadClass("replaced_token_detection", _detecting),
    "ElectraForSequenceClassification": classification("gelu"),
    "ElectraForTokenClassification": of_tokens(),
    "ElectraForQuestionAnswering": HeadClass("question_answering"),
}

FAMILIES = (ConfigFamily("electra", _read, _write, CLASSES),)
