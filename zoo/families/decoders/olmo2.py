"""OLMo 2 (OLMo team, 2025): ``Olmo2Config``, ``Olmo2Model`` and its heads: Llama with norms of what branches add."""

from __future__ import annotations

from typing import Any

from zoo.families.common.family import Family
from zoo.families.common.fields import Bias
from zoo.families.common.heads import decoder_classes
from zoo.families.common.llama_like import LlamaFields, layer_weights, llama_tensors
from zoo.families.common.template import Template

OLMO2_NORMS = {
    "post_attention_layernorm": "attention_norm",
    "post_feedforward_layernorm": "feed_forward_norm",
}
OLMO2_TENSORS = llama_tensors(
    "olmo2",
    *layer_weights(OLMO2_NORMS),
    without=("layernorm",),
    head_prefixes={"question_answering": "transformer."},
)
"""OLMo 2 and 3 and EXAONE 4."""


def olmo2_body(fields: LlamaFields, **more: Any) -> Template:
    """Return the template of OLMo 2 and 3; ``more`` as for :meth:`LlamaFields.body`."""
    return fields.body(
        kind="reordered_norm",
        attention={
            "bias": Bias("attention_bias", default=False),
            "qk_norm": {"norm": fields.norm, "over": "width"},
        },
        **more,
    )


FAMILIES = (
    Family(
        "olmo2",
        OLMO2_TENSORS,
        olmo2_body(LlamaFields(vocab_size=50304, eps=1e-5)),
        decoder_classes("Olmo2", without=("ForTokenClassification", "ForQuestionAnswering")),
    ),
)
