"""GLM-4.7-Flash (Z.ai, 2026): ``Glm4MoeLiteConfig``, ``Glm4MoeLiteModel`` and its head: DeepSeek-V3 with dense layers by name."""

from __future__ import annotations

from zoo.families.common import fields as f
from zoo.families.common.family import Family
from zoo.families.common.heads import BODY, language_modeling
from zoo.families.common.llama_like import LlamaFields
from zoo.families.common.mixtures import TRAINING, ExpertGroups, sigmoid_mixture, sigmoid_router
from zoo.families.common.mlp_kinds import MlpKinds
from zoo.families.common.next_token import next_token_class
from zoo.families.decoders.deepseek import LATENT_TENSORS, LatentDims, latent_body, latent_fixed

_FIELDS = LlamaFields(
    vocab_size=154880,
    hidden_size=2048,
    intermediate_size=10240,
    layers=47,
    heads=20,
    context=202752,
    eps=1e-5,
)

_DIMS = LatentDims(query_rank=768, head_dim=192, value_dim=256)

_SCORES = language_modeling(tied=False, bias=False)
_BODY = latent_body(
    _FIELDS,
    dims=_DIMS,
    layout=f.Choice("rope_interleave", {True: "interleaved", False: "half_split"}, True),
    feed_forward=sigmoid_mixture(
        _FIELDS,
        sigmoid_router(ExpertGroups(1, 1, 2), normalize=True, scale=1.8),
        experts=64,
        top_k=4,
        hidden=1536,
        shared=1,
    ),
    dense=MlpKinds(_FIELDS.feed_forward(), 1),
    constants=f.Stated(num_nextn_predict_layers=0),
)

FAMILIES = (
    Family(
        "glm4_moe_lite",
        LATENT_TENSORS,
        _BODY,
        {
            "Glm4MoeLiteForCausalLM": _SCORES,
            "Glm4MoeLiteModel": BODY,
            "Glm4MoeLiteMTPModel": next_token_class(_BODY, _FIELDS.norm, _SCORES),
        },
        fixed={
            **latent_fixed(_FIELDS, "sigmoid", _DIMS),
            "topk_method": ("noaux_tc", "the reference has no other"),
        },
        ignored=("ep_size", "num_nextn_predict_layers", *TRAINING),  # layers beyond the model itself
    ),
)
