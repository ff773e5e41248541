"""Megatron-BERT (Shoeybi et al., 2019): ``MegatronBertConfig``, ``MegatronBertModel`` and its heads: BERT with norms before its branches."""

from __future__ import annotations

from zoo.families.common.encoders import (
    CLASSIFIER_RULES,
    EMBEDDINGS,
    FIXED,
    IGNORED,
    UNUSED,
    bert_body,
    classifiers,
    masked,
    masked_rules,
    pooler,
)
from zoo.families.common.family import Family
from zoo.families.common.fields import Activation, Float
from zoo.families.common.tensors import Tensors, affine, modules, projections

_BODY = bert_body(vocab_size=29056, d_model=1024, heads=16, hidden=4096, depth=24, kind="pre_norm")
_BODY["embedding"] = {**_BODY["embedding"], "norm": None}
_LAYER = {
    "attention.ln": "attention_norm",
    **projections("attention.self.", "query key value"),
    "attention.output.dense": "attention.output",
    "ln": "feed_forward_norm",
    "intermediate.dense": "feed_forward.up",
    "output.dense": "feed_forward.down",
}
_MASKED = masked(Activation("hidden_act", "gelu"))
_DROPOUT = Float("hidden_dropout_prob", default=0.1)

FAMILIES = (
    Family(
        "megatron-bert",
        Tensors(
            "megatron-bert",
            (
                *(rule for rule in EMBEDDINGS if "LayerNorm" not in rule.stored),
                *modules(_LAYER, "encoder.layer.{layer}.", "encoder.blocks.{layer}."),
                *affine("encoder.ln", "encoder.final_norm"),
            ),
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
            optional=("pooler.*", "cls.*", "classifier.*", "qa_outputs.*"),
            unused=UNUSED,
        ),
        _BODY,
        {
            "MegatronBertModel": pooler(),
            "MegatronBertForMaskedLM": _MASKED,
            "MegatronBertForPreTraining": _MASKED,
            **classifiers("MegatronBert", "tanh", _DROPOUT),
        },
        fixed=FIXED,
        ignored=IGNORED,
    ),
)
