"""BERT (Devlin et al., 2018): ``BertConfig``, ``BertModel`` and its heads."""

from __future__ import annotations

from zoo.families.common.encoders import (
    BERT_RULES,
    CLASSIFIER_RULES,
    FIXED,
    IGNORED,
    RENAMED,
    UNUSED,
    bert_body,
    classifiers,
    masked,
    masked_rules,
    pooler,
)
from zoo.families.common.family import Family
from zoo.families.common.fields import Activation
from zoo.families.common.tensors import Tensors, affine, modules

_MASKED = masked(Activation("hidden_act", "gelu"))
_TENSORS = Tensors(
    "bert",
    BERT_RULES,
    prefix="bert.",
    outside=("cls.", "classifier.", "qa_outputs."),
    heads={
        "pooler": affine("pooler.dense", "head.dense"),
        "masked_language_modeling": masked_rules(
            "cls.predictions.transform.dense",
            "cls.predictions.transform.LayerNorm",
            "cls.predictions.decoder",
            "cls.predictions.bias",
        ),
        "classification": modules({"pooler.dense": "head.dense", "classifier": "head.labels"}),
        **CLASSIFIER_RULES,
    },
    renamed=RENAMED,
    optional=("pooler.*", "cls.*", "classifier.*", "qa_outputs.*"),
    unused=UNUSED,
)

FAMILIES = (
    Family(
        "bert",
        _TENSORS,
        bert_body(),
        {
            "BertModel": pooler(),
            "BertForMaskedLM": _MASKED,
            "BertForPreTraining": _MASKED,
            **classifiers("Bert", "tanh"),
        },
        fixed=FIXED,
        ignored=("classifier_dropout", *IGNORED),  # of some heads
    ),
)
