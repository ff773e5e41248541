"""ELECTRA (Clark et al., 2020): BERT's names for the body; generators and discriminators differ in their heads."""

from __future__ import annotations

from zoo.checkpoints.bert import BODY, RENAMED, UNUSED
from zoo.checkpoints.family import Family, affine, same

ELECTRA = Family(
    name="electra",
    model_types=("electra",),
    prefix="electra.",
    outside=("generator_", "discriminator_", "classifier.", "qa_outputs."),
    rules=(*BODY, *affine("embeddings_project", "embedding.projection")),
    heads={
        "masked_language_modeling": (
            *affine("generator_predictions.dense", "head.dense"),
            *affine("generator_predictions.LayerNorm", "head.norm"),
            same("generator_lm_head.weight", "head.vocabulary.weight"),
            same("generator_lm_head.bias", "head.vocabulary.bias"),
        ),
        "classification": (
            *affine("classifier.dense", "head.dense"),
            *affine("classifier.out_proj", "head.labels"),
        ),
        "replaced_token_detection": (
            *affine("discriminator_predictions.dense", "head.dense"),
            *affine("discriminator_predictions.dense_prediction", "head.score"),
        ),
        "token_classification": affine("classifier", "head.labels"),
        "question_answering": affine("qa_outputs", "head.span"),
    },
    renamed=RENAMED,
    optional=("generator_*", "discriminator_*", "classifier.*", "qa_outputs.*"),
    unused=UNUSED,
)
