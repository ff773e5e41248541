"""FlexOlmo (Shi et al., 2025): ``FlexOlmoConfig``, ``FlexOlmoModel`` and its head: OLMo 2 with a mixture in every layer."""

from __future__ import annotations

from zoo.families.common import fields as f
from zoo.families.common.family import Family
from zoo.families.common.heads import BODY, language_modeling
from zoo.families.common.llama_like import WHOLE_HEADS, LlamaFields, layer_weights, llama_tensors
from zoo.families.common.mixtures import EXPERTS, TRAINING, mixture
from zoo.families.decoders.olmo2 import OLMO2_NORMS, olmo2_body

_FIELDS = LlamaFields(vocab_size=100352, context=4096)
_MIXTURE = mixture(
    f.Int("num_experts", "num_local_experts", default=7),
    5,
    _FIELDS.feed_forward(),
    router={"normalize": f.Bool("norm_topk_prob", default=False)},
)

FAMILIES = (
    Family(
        "flex_olmo",
        llama_tensors("flex_olmo", *layer_weights(OLMO2_NORMS), *EXPERTS, without=("layernorm",)),
        olmo2_body(
            _FIELDS,
            feed_forward=_MIXTURE,
            position=_FIELDS.rope(whole=WHOLE_HEADS, theta=500000.0),
        ),
        {"FlexOlmoForCausalLM": language_modeling(tied=False, bias=False), "FlexOlmoModel": BODY},
        ignored=TRAINING,
    ),
)
