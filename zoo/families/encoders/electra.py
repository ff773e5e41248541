"""ELECTRA (Clark et al., 2020): ``ElectraConfig``, ``ElectraModel`` and its heads.

BERT's names for the body; generators and discriminators differ in their heads.
"""

from __future__ import annotations

from zoo.families.common import fields as f
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
)
from zoo.families.common.family import Family, HeadClass
from zoo.families.common.heads import BODY
from zoo.families.common.tensors import Tensors, affine, modules

_SUMMARY = tuple(f"summary_{name}" for name in ("activation", "last_dropout", "type", "use_proj"))


_WIDTH = f.TableWidth("embedding_size", default=128, d_model=f.Int("hidden_size", default=256))
_BODY = BertFields(d_model=256, heads=4, hidden=1024).body(width=_WIDTH)
_DISCRIMINATOR = {
    "discriminator_predictions.dense": "head.dense",
    "discriminator_predictions.dense_prediction": "head.score",
}
_TENSORS = Tensors(
    "electra",
    (*BERT_RULES, *affine("embeddings_project", "embedding.projection")),
    prefix="electra.",
    outside=("generator_", "discriminator_", "classifier.", "qa_outputs."),
    heads={
        "masked_language_modeling": masked_rules(
            "generator_predictions.dense", "generator_predictions.LayerNorm", "generator_lm_head"
        ),
        "classification": modules({"classifier.dense": "head.dense", "classifier.out_proj": "head.labels"}),
        "replaced_token_detection": modules(_DISCRIMINATOR),
        **CLASSIFIER_RULES,
    },
    renamed=RENAMED,
    optional=("generator_*", "discriminator_*", "classifier.*", "qa_outputs.*"),
    unused=UNUSED,
)

FAMILIES = (
    Family(
        "electra",
        _TENSORS,
        _BODY,
        {
            "ElectraModel": BODY,
            "ElectraForMaskedLM": masked("gelu"),
            "ElectraForPreTraining": HeadClass(
                "replaced_token_detection", {"activation": f.Activation("hidden_act", "gelu")}
            ),
            **classifiers("Electra", "gelu"),
        },
        fixed=FIXED,
        ignored=("classifier_dropout", *_SUMMARY, *IGNORED),  # of some heads
    ),
)
