"""Phi-3.5-MoE (Microsoft, 2024): ``PhimoeConfig``, ``PhimoeModel`` and its heads: Mixtral with layer norms and SparseMixer."""

from __future__ import annotations

from specs.kinds.position import PositionKind
from specs.kinds.rope_scaling import LongRopeScaling
from zoo.families.common import fields as f
from zoo.families.common.config import Config
from zoo.families.common.decoders import layer_norm
from zoo.families.common.family import Family
from zoo.families.common.heads import BODY, LAST_TOKEN, language_modeling
from zoo.families.common.held import also_named
from zoo.families.common.llama_like import WHOLE_HEADS, LlamaFields, layer_modules, llama_tensors
from zoo.families.common.mixtures import MIXTRAL_MODULE, TRAINING, experts
from zoo.families.common.rope import RopeField, RopeParameters, rope_of
from zoo.families.common.template import Data, FieldContext
from zoo.families.common.tensors import affine
from zoo.families.common.typed_fields import REQUIRED

_FIELDS = LlamaFields(
    vocab_size=32064, intermediate_size=6400, heads=32, kv_heads=8, context=131072, eps=1e-5
)
_NORMS = {"input_layernorm": "attention_norm", "post_attention_layernorm": "feed_forward_norm"}


class _LongRope(RopeField):
    """LongRoPE whose amplitude is stated for short and for long inputs, which must agree."""

    def read_parameters(self, config: Config, parameters: Config, theta: float | None = None) -> Data:
        short, long = parameters.float("short_mscale"), parameters.float("long_mscale")
        position = super().read_parameters(config, parameters, theta)
        if "scaling" in position:
            position["scaling"]["attention_factor"] = parameters.float("short_mscale", default=REQUIRED)
            if long != short:
                parameters.refuse(
                    "long_mscale", "must equal short_mscale: one amplitude holds for all lengths"
                )
        return position

    def write(self, value: PositionKind, context: FieldContext) -> Data:
        fields, scaling = super().write(value, context), rope_of(value).scaling
        if isinstance(scaling, LongRopeScaling):
            amplitude = scaling.amplitude(context.model.context_length_of(context.stack))
            fields["rope_scaling"] |= {"short_mscale": amplitude, "long_mscale": amplitude}
            fields["rope_scaling"].pop("attention_factor", None)
        return fields


FAMILIES = (
    Family(
        "phimoe",
        llama_tensors(
            "phimoe",
            *also_named(
                experts("block_sparse_moe", "w1", "w3", "w2"), MIXTRAL_MODULE, (r"mlp\.gate\.", "mlp.router.")
            ),
            *layer_modules(_NORMS),
            *affine("norm", "decoder.final_norm"),
            without=("layernorm",),
        ),
        _FIELDS.body(
            attention={"bias": f.Bias("attention_bias", default=False), "window": f.Int("sliding_window")},
            norm=layer_norm("rms_norm_eps"),
            position=_LongRope(
                _FIELDS.heads.width,
                _FIELDS.context,
                theta=1e6,
                whole=WHOLE_HEADS,
                parameters=RopeParameters({"longrope": "longrope"}),
            ),
            feed_forward={
                "kind": "mixture",
                "experts": f.Int("num_local_experts", default=16),
                "top_k": 2,
                "expert": _FIELDS.feed_forward(),
                "router": {"scores": "sparse_mixer", "normalize": False},
            },
        ),
        {
            "PhimoeForCausalLM": language_modeling(tied=False, bias=f.Bool("lm_head_bias", default=False)),
            "PhimoeModel": BODY,
            "PhimoeForSequenceClassification": LAST_TOKEN,
        },
        fixed={
            "num_experts_per_tok": (2, "the reference selects two experts, whatever it is"),
            "router_jitter_noise": (0.01, "experts are compared within a gap of 2 %"),
        },
        ignored=("input_jitter_noise", "lm_head_bias", *TRAINING),
    ),
)
