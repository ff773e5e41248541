"""Hunyuan dense (Tencent, 2025): ``HunYuanDenseV1Config``, ``HunYuanDenseV1Model`` and its heads: Llama that norms rotated heads."""

from __future__ import annotations

from zoo.families.common import fields as f
from zoo.families.common.config import Config
from zoo.families.common.family import Family
from zoo.families.common.heads import decoder_classes
from zoo.families.common.llama_like import WHOLE_HEADS, LlamaFields, layer_modules, llama_tensors
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


FAMILIES = (
    Family(
        "hunyuan_v1_dense",
        llama_tensors(
            "hunyuan_v1_dense",
            *layer_modules(
                {
                    "self_attn.query_layernorm": "attention.query_norm",
                    "self_attn.key_layernorm": "attention.key_norm",
                }
            ),
            without=("q_norm", "k_norm"),
        ),
        _FIELDS.body(
            attention={
                "bias": f.Bias("attention_bias", default=False),
                "qk_norm": {"norm": _FIELDS.norm, "over": "head", "after_rotation": True},
            },
            position=_HunyuanRope(_FIELDS.heads.width, _FIELDS.context, whole=WHOLE_HEADS),
        ),
        decoder_classes("HunYuanDenseV1", without=("ForTokenClassification", "ForQuestionAnswering")),
        ignored=("eod_token_id",),
    ),
)
