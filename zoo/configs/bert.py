"""BERT (Devlin et al., 2018): ``BertConfig``."""

from __future__ import annotations

from zoo.configs.activations import read_activation
from zoo.configs.config import Config
from zoo.configs.encoders import classification, masked, of_tokens, pooler, read_bert, read_norm, write_bert
from zoo.configs.family import ConfigFamily, Data, HeadClass


def _read(config: Config, class_name: str) -> Data:
    config.ignore("classifier_dropout")  # of some heads
    return read_bert(config)


def _masked(config: Config) -> Data:
    return {"activation": read_activation(config, "hidden_act", "gelu"), "norm": read_norm(config)}


CLASSES = {
    "BertModel": pooler(),
    "BertForMaskedLM": masked(_masked),
    "BertForPreTraining": masked(_masked),
    "BertForSequenceClassification": classification("tanh"),
    "BertForTokenClassification": of_tokens(),
    "BertForQuestionAnswering": HeadClass("question_answering"),
}

FAMILIES = (ConfigFamily("bert", _read, write_bert, CLASSES),)
