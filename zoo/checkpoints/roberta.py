"""RoBERTa (Liu et al., 2019) and XLM-RoBERTa: BERT's names for the body, others for the heads."""

from __future__ import annotations

from zoo.checkpoints.bert import BODY, RENAMED, UNUSED
from zoo.checkpoints.family import Family, affine, same

ROBERTA = Family(
    name="roberta",
    model_types=("roberta", "xlm-roberta"),
    prefix="roberta.",
    outside=("lm_head.", "classifier.", "qa_outputs."),
    rules=BODY,
    heads={
        "pooler": affine("pooler.dense", "head.dense"),
        "masked_language_modeling": (
            *affine("lm_head.dense", "head.dense"),
            *affine("lm_head.layer_norm", "head.norm"),
            same("lm_head.decoder.weight", "head.vocabulary.weight"),
            same("lm_head.decoder.bias", "head.vocabulary.bias", copies=("lm_head.bias",)),
        ),
        "classification": (
            *affine("classifier.dense", "head.dense"),
            *affine("classifier.out_proj", "head.labels"),
        ),
        "token_classification": affine("classifier", "head.labels"),
        "question_answering": affine("qa_outputs", "head.span"),
    },
    renamed=RENAMED,
    optional=("pooler.*", "lm_head.*", "classifier.*", "qa_outputs.*"),
    unused=UNUSED,
)
