"""Hunyuan (Tencent, 2025): ``HunYuanDenseV1Config``, ``HunYuanMoEV1Config`` and their models: Llama that norms rotated heads, and its
mixture."""

from __future__ import annotations

from zoo.families.common import fields as f
from zoo.families.common.config import Config
from zoo.families.common.family import Family
from zoo.families.common.heads import decoder_classes
from zoo.families.common.llama_like import WHOLE_HEADS, LlamaFields, layer_modules, llama_tensors
from zoo.families.common.mixtures import TRAINING, experts, shared
from zoo.families.common.rope import RopeField
from zoo.families.common.template import Data, read

_FIELDS = LlamaFields(vocab_size=290943, eps=1e-5)


class _HunyuanRope(RopeField):
    """A rotary position whose base may be stretched once for all lengths: ``dynamic`` with an ``alpha``."""

    def read_parameters(self, config: Config, parameters: Config, theta: float | None = None) -> Data:
        alpha = parameters.float("alpha")
        if (
            not alpha
            or parameters.text("rope_type", default=parameters.text("type", default="default")) != "dynamic"
        ):
            return super().read_parameters(config, parameters, theta)
        width: int = read(self.width, config)
        base = parameters.float("rope_theta", default=config.float("rope_theta", default=self.theta))
        parameters.ignore("rope_type", "type", "factor", "beta_fast", "beta_slow", "mscale", "mscale_all_dim")
        plain = Config({}, config.where)
        stretched: Data = super().read_parameters(config, plain, theta)
        parameters.finish()
        return {**stretched, "theta": base * alpha ** (width / (width - 2))}


def _restated(config: Config) -> Data:
    """Refuse widths of experts in early configs that differ from intermediate_size."""
    hidden = _FIELDS.hidden.read(config)
    for name, value in (("moe_intermediate_size", hidden), ("num_shared_expert", 1)):
        if f.EqualInLayers(name, default=value).read(config) != value:
            config.refuse(name, f"must be {value}: the shared feed-forward is as wide as an expert")
    return {}


_MIXTURE = {
    "kind": "mixture",
    "experts": f.EqualInLayers("num_experts", "num_local_experts", default=1),
    "top_k": f.EqualInLayers("moe_topk", "num_experts_per_tok", default=1),
    "expert": _FIELDS.feed_forward(),
    "shared": _FIELDS.feed_forward(),
    "*": f.Derived(_restated),
}
_ATTENTION = {
    "bias": f.Bias("attention_bias", default=False),
    "qk_norm": {"norm": _FIELDS.norm, "over": "head", "after_rotation": True},
}
_POSITION = _HunyuanRope(_FIELDS.heads.width, _FIELDS.context, whole=WHOLE_HEADS)
_NORMS = layer_modules(
    {"self_attn.query_layernorm": "attention.query_norm", "self_attn.key_layernorm": "attention.key_norm"}
)
_WITHOUT = ("ForTokenClassification", "ForQuestionAnswering")

FAMILIES = (
    Family(
        "hunyuan_v1_dense",
        llama_tensors("hunyuan_v1_dense", *_NORMS, without=("q_norm", "k_norm")),
        _FIELDS.body(attention=_ATTENTION, position=_POSITION),
        decoder_classes("HunYuanDenseV1", without=_WITHOUT),
        ignored=("eod_token_id",),
    ),
    Family(
        "hunyuan_v1_moe",
        llama_tensors(
            "hunyuan_v1_moe",
            *_NORMS,
            *experts("mlp", "gate_proj", "up_proj", "down_proj", router="gate.wg"),
            *layer_modules(shared("shared_mlp")),
            without=("q_norm", "k_norm"),
        ),
        _FIELDS.body(attention=_ATTENTION, position=_POSITION, feed_forward=_MIXTURE),
        decoder_classes("HunYuanMoEV1", without=_WITHOUT),
        fixed={
            "use_cla": (False, "each layer has keys and values of its own"),
            "use_mla": (False, "keys and values are not compressed"),
            "use_mixed_mlp_moe": (True, "every mixture has a shared feed-forward"),
            "moe_layer_num_skipped": (0, "every layer has a mixture"),
            "use_qk_norm": (True, "queries and keys are normalised"),
            "mlp_bias": (False, "the checkpoints have no such biases"),
        },
        ignored=("eod_token_id", "cla_share_factor", *TRAINING),
    ),
)
