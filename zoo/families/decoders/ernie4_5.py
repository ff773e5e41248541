"""ERNIE 4.5 (Baidu, 2025): ``Ernie4_5Config``, ``Ernie4_5_MoeConfig`` and their models: Llama, and mixtures with corrected scores."""

from __future__ import annotations

from collections.abc import Sequence

from zoo.families.common import fields as f
from zoo.families.common.config import Config
from zoo.families.common.family import Family
from zoo.families.common.heads import BODY, language_modeling
from zoo.families.common.llama_like import (
    BLOCK,
    LAYER,
    WHOLE_HEADS,
    LlamaFields,
    layer_modules,
    llama_tensors,
)
from zoo.families.common.mixtures import EXPERTS, TRAINING, DenseLayers, Shared, shared
from zoo.families.common.template import Data, FieldContext, Template
from zoo.families.common.tensors import Rule
from zoo.families.common.transforms import Unsqueezed

_BIAS = f.Bool("use_bias", default=False)


class _LayerInterval(DenseLayers):
    """The layers without a mixture: those outside moe_layer_start_index to moe_layer_end_index, and between the intervals."""

    def read(self, config: Config, depth: int) -> list[bool]:
        first = config.int("moe_layer_start_index", default=1)
        last = config.int("moe_layer_end_index", default=-1)
        every = config.int("moe_layer_interval", default=1)
        if every < 1:
            config.refuse("moe_layer_interval", "must be at least 1")
        mixtures = range(first, depth if last == -1 else last + 1)
        return [layer not in mixtures or (layer + 1) % every != 0 for layer in range(depth)]

    def write(self, where: Sequence[bool], context: FieldContext) -> Data:
        mixtures = [layer for layer, dense in enumerate(where) if not dense] or [len(where)]
        every = mixtures[1] - mixtures[0] if len(mixtures) > 1 else 1
        return {
            "moe_layer_start_index": mixtures[0],
            "moe_layer_end_index": mixtures[-1],
            "moe_layer_interval": every,
        }


def _body(fields: LlamaFields, **more: Template) -> Template:
    return fields.body(
        attention={"bias": f.Bias("use_bias", default=False), "dropout": 0.0},
        position=fields.rope(theta=5e5, whole=WHOLE_HEADS, layout="interleaved"),
        **more,
    )


_SMALL = LlamaFields(
    vocab_size=103424, hidden_size=1024, intermediate_size=3072, layers=18, heads=16, kv_heads=2, head_dim=128,
    context=131072, eps=1e-5,
)  # fmt: skip
_LARGE = LlamaFields(
    vocab_size=103424, hidden_size=2560, intermediate_size=12288, layers=28, heads=20, kv_heads=4,
    context=131072, eps=1e-5,
)  # fmt: skip
_WIDTH = f.Int("moe_intermediate_size", default=1536)
_DENSE = _LARGE.feed_forward(bias=_BIAS)
_MIXTURE = {
    "kind": "mixture",
    "experts": f.Int("moe_num_experts", "num_experts", default=64),
    "top_k": f.Int("moe_k", "num_experts_per_tok", default=6),
    "expert": _LARGE.feed_forward(hidden=_WIDTH),
    "shared": Shared(_DENSE, _WIDTH, "moe_num_shared_experts", default=2),
    "router": {"score_correction_bias": True},
}

FAMILIES = (
    Family(
        "ernie4_5",
        llama_tensors("ernie4_5"),
        _body(_SMALL, feed_forward=_SMALL.feed_forward(bias=_BIAS)),
        {"Ernie4_5ForCausalLM": language_modeling(tied=True, bias=False), "Ernie4_5Model": BODY},
    ),
    Family(
        "ernie4_5_moe",
        llama_tensors(
            "ernie4_5_moe",
            *EXPERTS,
            *layer_modules(shared("shared_experts")),
            Rule(
                f"{LAYER}mlp.moe_statics.e_score_correction_bias",
                (f"{BLOCK}feed_forward.router.score_correction_bias",),
                Unsqueezed(),
                also=(f"{LAYER}mlp.gate.moe_statics.e_score_correction_bias",),  # as transformers 5 holds it
            ),
            unused=("mtp*",),  # layers that guess further tokens
        ),
        _body(_LARGE, feed_forward=_MIXTURE, varies=(_LayerInterval(_DENSE),)),
        {"Ernie4_5_MoeForCausalLM": language_modeling(tied=True, bias=_BIAS), "Ernie4_5_MoeModel": BODY},
        fixed={"moe_norm_min": (1e-12, "weights are divided by their sum, whatever it is")},
        ignored=TRAINING,
    ),
)
