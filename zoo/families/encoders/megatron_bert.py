"""Megatron-BERT (Shoeybi et al., 2019): ``MegatronBertConfig``, ``MegatronBertModel`` and its heads: BERT with norms before its branches."""

from __future__ import annotations

from dataclasses import replace

from zoo.families.common.encoders import EMBEDDINGS, FIXED, IGNORED, BertFields, classifiers, pooler
from zoo.families.common.family import Family
from zoo.families.common.fields import Float
from zoo.families.common.tensors import affine, modules, projections
from zoo.families.encoders.bert import MASKED, TENSORS

_BODY = BertFields(vocab_size=29056, d_model=1024, heads=16, hidden=4096, depth=24).body(kind="pre_norm")
_BODY["embedding"] = {**_BODY["embedding"], "norm": None}
_LAYER = {
    "attention.ln": "attention_norm",
    **projections("attention.self.", "query key value"),
    "attention.output.dense": "attention.output",
    "ln": "feed_forward_norm",
    "intermediate.dense": "feed_forward.up",
    "output.dense": "feed_forward.down",
}
_DROPOUT = Float("hidden_dropout_prob", default=0.1)

FAMILIES = (
    Family(
        "megatron-bert",
        replace(
            TENSORS,
            name="megatron-bert",
            rules=(
                *(rule for rule in EMBEDDINGS if "LayerNorm" not in rule.stored),
                *modules(_LAYER, "encoder.layer.{layer}.", "encoder.blocks.{layer}."),
                *affine("encoder.ln", "encoder.final_norm"),
            ),
            renamed={},
        ),
        _BODY,
        {
            "MegatronBertModel": pooler(),
            "MegatronBertForMaskedLM": MASKED,
            "MegatronBertForPreTraining": MASKED,
            **classifiers("MegatronBert", "tanh", _DROPOUT),
        },
        fixed=FIXED,
        ignored=IGNORED,
    ),
)
