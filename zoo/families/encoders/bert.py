"""BERT (Devlin et al., 2018) and ERNIE (Sun et al., 2019) without embeddings of tasks: ``BertConfig``, ``ErnieConfig`` and their models."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from zoo.families.common.encoders import (
    BERT_RULES,
    CLASSIFIER_RULES,
    FIXED,
    IGNORED,
    RENAMED,
    UNUSED,
    BertFields,
    classifiers,
    masked,
    masked_rules,
    pooler,
)
from zoo.families.common.family import Family
from zoo.families.common.fields import Activation
from zoo.families.common.template import Template
from zoo.families.common.tensors import Tensors, affine, modules

MASKED = masked(Activation("hidden_act", "gelu"))
TENSORS = Tensors(
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


def _family(
    model_type: str,
    prefix: str,
    tensors: Tensors = TENSORS,
    *,
    fixed: Mapping[str, tuple[Template, str]] = FIXED,
    ignored: tuple[str, ...] = (),
) -> Family:
    classes = {
        f"{prefix}Model": pooler(),
        f"{prefix}ForMaskedLM": MASKED,
        f"{prefix}ForPreTraining": MASKED,
        **classifiers(prefix, "tanh"),
    }
    # the first is of some heads
    return Family(
        model_type,
        tensors,
        BertFields().body(),
        classes,
        fixed=fixed,
        ignored=("classifier_dropout", *IGNORED, *ignored),
    )


FAMILIES = (
    _family("bert", "Bert"),
    _family(
        "ernie",
        "Ernie",
        replace(TENSORS, name="ernie", prefix="ernie."),
        fixed={**FIXED, "use_task_id": (False, "embeddings of tasks are not supported")},
        ignored=("task_type_vocab_size",),
    ),
)
