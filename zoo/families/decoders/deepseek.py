"""DeepSeek-V2 and V3 (DeepSeek-AI, 2024): ``DeepseekV2Config``, ``DeepseekV3Config`` and their models.

Latent attention; the first layers have an ordinary feed-forward, the others a mixture of experts.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

from specs.kinds.rope_scaling import YarnScaling
from zoo.families.common import fields as f
from zoo.families.common.config import Config
from zoo.families.common.family import Family
from zoo.families.common.heads import decoder_classes, language_modeling
from zoo.families.common.llama_like import LlamaFields, layer_modules, layer_weights, llama_tensors
from zoo.families.common.mixtures import (
    CORRECTION,
    EXPERTS,
    TRAINING,
    DenseLayers,
    ExpertGroups,
    FirstLayers,
    Shared,
    shared,
    sigmoid_mixture,
    sigmoid_router,
)
from zoo.families.common.next_token import next_token_class, with_next_layer
from zoo.families.common.rope import RopeField, stated_parameters, yarn_amplitude, yarn_mscale
from zoo.families.common.template import Data, Field, FieldContext, Template, UnfitError
from zoo.families.common.typed_fields import REQUIRED


@dataclass(frozen=True)
class LatentDims:
    """The defaults of a family for the widths of latent attention."""

    query_rank: int | None = 1536
    kv_rank: int = 512
    head_dim: int = 128
    rope_dim: int = 64
    value_dim: int = 128

    @property
    def unrotated(self) -> f.Int:
        """The part of a head that does not rotate."""
        return f.Int("qk_nope_head_dim", default=self.head_dim)

    @property
    def rotated(self) -> f.Int:
        """The part that rotates."""
        return f.Int("qk_rope_head_dim", default=self.rope_dim)

    @property
    def width(self) -> f.Derived:
        """Both together."""
        return f.Derived(lambda config: self.unrotated.read(config) + self.rotated.read(config))


V3_DIMS = LatentDims()


class _YarnScale(Field):
    """The scale of scores, which YaRN may multiply by the square of an amplitude."""

    def __init__(self, rope: RopeField, width: Field) -> None:
        self.rope, self.width = rope, width

    def read(self, config: Config) -> float | None:
        scaling = stated_parameters(config)
        mscale = None if scaling is None else scaling.float("mscale_all_dim")
        if scaling is None or not mscale:
            return None
        amplitude: float = yarn_amplitude(scaling.float("factor", default=REQUIRED), mscale)
        return float(self.width.read(config) ** -0.5 * amplitude**2)

    def write(self, value: float | None, context: FieldContext) -> Data:
        attention: Any = context.block.attention
        default = (attention.head_dim + attention.rope_dim) ** -0.5
        if value is None or math.isclose(value, default, rel_tol=1e-12):
            return {}
        scaling = getattr(context.position, "scaling", None)
        if not isinstance(scaling, YarnScaling) or scaling.factor == 1:
            raise UnfitError(f"a scale of attention of {value:g} without scaling of kind yarn")
        whole = math.sqrt(value / default)
        mscales = {"mscale_all_dim": yarn_mscale(scaling.factor, whole)}
        if scaling.attention_factor is not None:
            mscales["mscale"] = yarn_mscale(scaling.factor, scaling.attention_factor * whole)
        written = self.rope.write(context.position, context)
        name = "rope_parameters" if "rope_parameters" in written else "rope_scaling"
        return {name: {**written[name], **mscales}}


def _open(top_k: int, config: Config) -> int:
    """The experts of a token, which may include experts of closed groups, with the weight 0."""
    groups = _V2_GROUPS.read(config)
    if not groups:
        return top_k
    size = _V2_EXPERTS.read(config) // max(1, groups["count"])
    return int(min(top_k, max(1, groups["top"] * size)))


def latent_attention(fields: LlamaFields, rope: RopeField, dims: LatentDims) -> dict[str, Template]:
    """The attention, whose scores YaRN may scale."""
    return {
        "kind": "latent",
        "heads": f.Int(
            "num_attention_heads",
            default=fields.heads.heads,
            written=("num_attention_heads", "num_key_value_heads"),
        ),
        "query_rank": f.Int("q_lora_rank", default=dims.query_rank, null=True),
        "kv_rank": f.Int("kv_lora_rank", default=dims.kv_rank),
        "head_dim": dims.unrotated,
        "rope_dim": dims.rotated,
        "value_dim": f.Int("v_head_dim", default=dims.value_dim),
        "bias": f.Bool("attention_bias", default=False),
        "scale": _YarnScale(rope, dims.width),
        "dropout": f.Float("attention_dropout", default=0.0),
    }


def latent_body(
    fields: LlamaFields,
    *,
    feed_forward: Template,
    dense: DenseLayers | None,
    constants: f.Stated,
    layout: Template = None,
    dims: LatentDims = V3_DIMS,
    rope: RopeField | None = None,
) -> dict[str, Template]:
    """The body: layers with latent attention and a mixture, or an ordinary feed-forward where ``dense`` says so.

    ``rope`` is the rotation, by default of the usual fields with a ``layout``.
    """
    rope = rope or RopeField(
        dims.rotated, fields.context, whole="qk_rope_head_dim says what is rotated", layout=layout
    )
    return fields.body(
        attention=latent_attention(fields, rope, dims),
        position=rope,
        feed_forward=feed_forward,
        varies=() if dense is None else (dense,),
        more={"*": constants},
    )


def latent_fixed(
    fields: LlamaFields, scores: str, dims: LatentDims = V3_DIMS
) -> dict[str, tuple[Template, str]]:
    """Fields that have one value in these families."""
    return {
        "moe_layer_freq": (1, "all layers after the first few have a mixture"),
        "num_key_value_heads": (fields.heads.heads, "every head has keys and values of its own"),
        "head_dim": (dims.rotated, "it is what is rotated, qk_rope_head_dim"),
        "qk_head_dim": (dims.width, "it is qk_nope_head_dim + qk_rope_head_dim"),
        "scoring_func": (scores, "the reference has no other"),
    }


_TENSORS = llama_tensors(
    "deepseek",
    *layer_modules(
        {
            "self_attn.q_a_proj": "attention.query_down",
            "self_attn.kv_a_proj_with_mqa": "attention.key_value_down",
            **shared("shared_experts"),
        }
    ),
    *layer_weights(
        {
            "self_attn.q_a_layernorm": "attention.query_norm",
            "self_attn.q_b_proj": "attention.query_up",
            "self_attn.kv_a_layernorm": "attention.key_value_norm",
            "self_attn.kv_b_proj": "attention.key_value_up",
        }
    ),
    *EXPERTS,
    CORRECTION,
    without=("q_norm", "k_norm"),
)
LATENT_TENSORS = with_next_layer(_TENSORS)
"""With the module of V3 that predicts a further token."""

_V2 = LlamaFields(vocab_size=102400)
_V2_EXPERTS = f.Int("n_routed_experts", "num_experts", default=64)
_V2_GROUPS = f.When(
    f.Choice("topk_method", {"greedy": False, "group_limited_greedy": True}, "greedy"),
    ExpertGroups(None, None, 1),
)
_V2_HIDDEN = f.Int("moe_intermediate_size", default=1407)
_V2_DENSE = _V2.feed_forward(bias=f.Bool("mlp_bias", default=False))
V2 = Family(
    "deepseek_v2",
    LATENT_TENSORS,
    latent_body(
        _V2,
        layout="interleaved",
        feed_forward={
            "kind": "mixture",
            "experts": _V2_EXPERTS,
            "top_k": f.Computed(f.Int("num_experts_per_tok", default=REQUIRED), _open),
            "expert": _V2.feed_forward(hidden=_V2_HIDDEN),
            "shared": Shared(_V2_DENSE, _V2_HIDDEN, "n_shared_experts", default=2),
            "router": {
                "normalize": False,
                "scale": f.Float("routed_scaling_factor", default=1.0),
                "groups": _V2_GROUPS,
            },
        },
        dense=FirstLayers(_V2_DENSE, 0),
        constants=f.Stated(num_experts_per_tok=1, scoring_func="softmax"),
    ),
    decoder_classes("DeepseekV2", without=("ForQuestionAnswering", "ForTokenClassification")),
    fixed={**latent_fixed(_V2, "softmax"), "norm_topk_prob": (False, "the reference does not normalise")},
    ignored=("ep_size", "n_group", "topk_group", *TRAINING),  # the greedy method makes nothing of groups
)

_V3 = LlamaFields(
    vocab_size=129280, hidden_size=7168, intermediate_size=18432, layers=61, heads=128, context=4096
)
_V3_BODY = latent_body(
    _V3,
    layout=f.Choice("rope_interleave", {True: "interleaved", False: "half_split"}, True),
    feed_forward=sigmoid_mixture(
        _V3,
        sigmoid_router(ExpertGroups(8, 4, 2), normalize=True, scale=2.5),
        experts=256,
        top_k=8,
        hidden=2048,
        shared=1,
    ),
    dense=FirstLayers(_V3.feed_forward(), 3),
    constants=f.Stated(scoring_func="sigmoid", topk_method="noaux_tc", num_nextn_predict_layers=0),
)
V3 = Family(
    "deepseek_v3",
    LATENT_TENSORS,
    _V3_BODY,
    {
        **decoder_classes("DeepseekV3", without=("ForQuestionAnswering",)),
        "DeepSeekMTPModel": next_token_class(_V3_BODY, _V3.norm, language_modeling(tied=False, bias=False)),
    },
    fixed={**latent_fixed(_V3, "sigmoid"), "topk_method": ("noaux_tc", "the reference has no other")},
    ignored=(
        "ep_size",
        "num_nextn_predict_layers",
        "num_mtp_layers",
        *TRAINING,
    ),  # layers beyond the model itself
)
K2 = replace(V3, model_type="kimi_k2")
"""Kimi K2 (Moonshot AI, 2025), whose code is DeepSeek-V3's."""
FAMILIES = (V2, V3, K2)
