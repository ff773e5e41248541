"""BERT (Devlin et al., 2018) and the models with its layers: ERNIE (Sun et al., 2019) without embeddings of tasks, the encoder of
BertGeneration (Rothe et al., 2020), and the body of Splinter (Ram et al., 2021)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

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
from zoo.families.common.heads import BODY
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


_GENERATION: dict[str, Any] = BertFields(50358, d_model=1024, heads=16, hidden=4096, depth=24).body()

FAMILIES = (
    _family("bert", "Bert"),
    _family(
        "ernie",
        "Ernie",
        replace(TENSORS, name="ernie", prefix="ernie."),
        fixed={**FIXED, "use_task_id": (False, "embeddings of tasks are not supported")},
        ignored=("task_type_vocab_size",),
    ),
    Family(
        "splinter",
        replace(TENSORS, name="splinter", prefix="splinter.", heads={}, optional=("splinter_qass.*",)),
        BertFields().body(),
        {"SplinterModel": BODY},
        refused=dict.fromkeys(
            ("SplinterForQuestionAnswering", "SplinterForPreTraining"),
            "a head that answers questions from a token that stands for each answer",
        ),
        fixed=FIXED,
        ignored=("question_token_id",),
    ),
    Family(
        "bert-generation",
        replace(TENSORS, name="bert-generation", heads={}, optional=("lm_head.*",)),
        {
            **_GENERATION,
            "embedding": {
                name: part for name, part in _GENERATION["embedding"].items() if name != "token_types"
            },
        },
        {"BertGenerationEncoder": BODY},
        refused={"BertGenerationDecoder": "BERT's layers as a decoder, which may attend to an encoder"},
        fixed=FIXED,
    ),
)
