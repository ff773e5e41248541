"""OLMoE (Muennighoff et al., 2024): ``OlmoeConfig``, ``OlmoeModel`` and its head: OLMo 2's attention and a mixture in every layer."""

from __future__ import annotations

from zoo.families.common import fields as f
from zoo.families.common.family import Family
from zoo.families.common.heads import BODY, language_modeling
from zoo.families.common.llama_like import LlamaFields, llama_tensors
from zoo.families.common.mixtures import EXPERTS, TRAINING, mixture

_FIELDS = LlamaFields(
    vocab_size=50304, hidden_size=2048, intermediate_size=2048, layers=16, heads=16, context=4096, eps=1e-5
)
_MIXTURE = mixture(
    f.Int("num_experts", "num_local_experts", default=64),
    8,
    _FIELDS.feed_forward(),
    router={"normalize": f.Bool("norm_topk_prob", default=False)},
)

FAMILIES = (
    Family(
        "olmoe",
        llama_tensors("olmoe", *EXPERTS),
        _FIELDS.body(
            attention={
                "bias": f.Bias("attention_bias", default=False),
                "qk_norm": {"norm": _FIELDS.norm, "over": "width"},
            },
            feed_forward=_MIXTURE,
        ),
        {"OlmoeForCausalLM": language_modeling(tied=False, bias=False), "OlmoeModel": BODY},
        fixed={"clip_qkv": (None, "the reference clips after the norms of queries and keys")},
        ignored=TRAINING,
    ),
)
