"""RoFormer (Su et al., 2021): ``RoFormerConfig``, ``RoFormerModel`` and its heads.

BERT with rotary positions, whose table the checkpoints hold beside the weights.
"""

from __future__ import annotations

from dataclasses import replace

from zoo.families.common import fields as f
from zoo.families.common.encoders import FIXED, IGNORED, BertFields, classification, masked
from zoo.families.common.family import Family
from zoo.families.common.heads import BODY, QUESTION_ANSWERING, SUMMARY, token_classes
from zoo.families.common.tensors import affine, modules
from zoo.families.encoders.bert import TENSORS

_ACTIVATION = f.Activation("hidden_act", "gelu")
_DROPOUT = f.Float("hidden_dropout_prob", default=0.1)
_WIDTH = f.Int("hidden_size", default=768)
_BODY = {
    **BertFields(50000).body(width=f.TableWidth("embedding_size", default=_WIDTH, d_model=_WIDTH)),
    "context_length": f.ContextLength("max_position_embeddings", default=1536),
    "position": {"kind": "rope", "theta": 10000.0, "layout": "interleaved"},
}

FAMILIES = (
    Family(
        "roformer",
        replace(
            TENSORS,
            name="roformer",
            rules=(
                *(rule for rule in TENSORS.rules if "position" not in rule.stored),
                *affine("embeddings_project", "embedding.projection"),
            ),
            prefix="roformer.",
            heads={
                **TENSORS.heads,
                "classification": modules(
                    {"classifier.dense": "head.dense", "classifier.out_proj": "head.labels"}
                ),
            },
            renamed={},
            unused=("encoder.embed_positions.weight",),
        ),
        _BODY,
        {
            "RoFormerModel": BODY,
            "RoFormerForMaskedLM": masked(_ACTIVATION),
            "RoFormerForSequenceClassification": classification(_ACTIVATION, _DROPOUT),
            "RoFormerForTokenClassification": token_classes(_DROPOUT),
            "RoFormerForQuestionAnswering": QUESTION_ANSWERING,
        },
        fixed={**FIXED, "rotary_value": (False, "rotations of the values are not supported")},
        ignored=(*SUMMARY, *IGNORED),
    ),
)
