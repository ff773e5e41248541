"""BERT (Devlin et al., 2018) and the models with its layers: ERNIE (Sun et al., 2019), LayoutLM (Xu et al., 2019), BROS
(Hong et al., 2022), the encoder of BertGeneration (Rothe et al., 2020), and the body of Splinter (Ram et al., 2021)."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from zoo.families.common.encoders import (
    BERT_RULES,
    CLASSIFIER_DROPOUT,
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
from zoo.families.common.fields import Activation, Bool, Checked, Float, Int, When
from zoo.families.common.heads import BODY, token_classes
from zoo.families.common.template import Field, Template
from zoo.families.common.tensors import Tensors, affine, modules, same

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
    dropout: Field = CLASSIFIER_DROPOUT,
    ignored: tuple[str, ...] = ("classifier_dropout",),  # of some heads
    **embedding: Template,
) -> Family:
    classes = {
        f"{prefix}Model": pooler(),
        f"{prefix}ForMaskedLM": MASKED,
        f"{prefix}ForPreTraining": MASKED,
        **classifiers(prefix, "tanh", dropout),
    }
    if prefix == "LayoutLM":
        del classes["LayoutLMForPreTraining"]
    return Family(
        model_type,
        tensors,
        BertFields().body(**embedding),
        classes,
        fixed=FIXED,
        ignored=(*ignored, *IGNORED),
    )


_BROS_DROPOUT = Float("classifier_dropout_prob", default=0.1)
_GENERATION: dict[str, Any] = BertFields(50358, d_model=1024, heads=16, hidden=4096, depth=24).body()

FAMILIES = (
    _family("bert", "Bert"),
    _family(
        "ernie",
        "Ernie",
        replace(
            TENSORS,
            name="ernie",
            rules=(
                *TENSORS.rules,
                same("embeddings.task_type_embeddings.weight", "embedding.task_type.weight"),
            ),
            prefix="ernie.",
        ),
        tasks=When(Bool("use_task_id", default=False), Int("task_type_vocab_size", default=3)),
        ignored=("classifier_dropout", "task_type_vocab_size"),
    ),
    _family(
        "layoutlm",
        "LayoutLM",
        replace(
            TENSORS,
            name="layoutlm",
            rules=(
                *TENSORS.rules,
                *(
                    same(f"embeddings.{name[0]}_position_embeddings.weight", f"embedding.boxes.{name}.weight")
                    for name in ("x", "y", "height", "width")
                ),
            ),
            prefix="layoutlm.",
        ),
        dropout=Float("hidden_dropout_prob", default=0.1),
        ignored=(),
        boxes=Checked(
            Int("max_2d_position_embeddings", default=1024), lambda count: count > 0, "must be 1 or more"
        ),
    ),
    Family(
        "bros",
        replace(
            TENSORS,
            name="bros",
            rules=(
                *TENSORS.rules,
                same(
                    "bbox_embeddings.bbox_projection.weight",
                    "encoder.blocks.{layer}.attention.position.projection.weight",
                ),
            ),
            prefix="bros.",
            heads={name: TENSORS.heads[name] for name in ("pooler", "token_classification")},
            unused=(*TENSORS.unused, "bbox_embeddings.bbox_sinusoid_emb.*"),
        ),
        BertFields().body(
            attention={"position": {"kind": "relative_boxes"}}, corners=Float("bbox_scale", default=100.0)
        ),
        {
            "BrosModel": pooler(),
            "BrosForTokenClassification": token_classes(_BROS_DROPOUT),
        },
        refused=dict.fromkeys(
            ("BrosSpadeEEForTokenClassification", "BrosSpadeELForTokenClassification"),
            "scores of pairs of tokens (SPADE)",
        ),
        fixed={**FIXED, "dim_bbox": (8, "a box has four corners")},
        ignored=(
            *("n_relations", "classifier_dropout_prob", "classifier_dropout"),  # of some heads
            *("dim_bbox_sinusoid_emb_1d", "dim_bbox_sinusoid_emb_2d", "dim_bbox_projection"),  # of the widths
            *IGNORED,
        ),
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
