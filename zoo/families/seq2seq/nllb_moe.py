"""The mixture of experts of NLLB-200 (NLLB Team, 2022): ``NllbMoeConfig`` and its models: M2M100 with two experts per token.

Experts have a capacity: the fraction of all tokens that one may take.  With the published fraction of 1, nothing is ever dropped.
Where training drops an expert's result with some probability, the results count less by it afterwards.
"""

from __future__ import annotations

from dataclasses import replace

from zoo.families.common import fields as f
from zoo.families.common.family import HeadClass
from zoo.families.common.heads import BODY
from zoo.families.common.layers import LayerVariation
from zoo.families.common.mixtures import TRAINING, CountedMixtures
from zoo.families.common.seq2seq import bart_tensors, stack_rules
from zoo.families.common.template import Data, Template, UnfitError
from zoo.families.common.tensors import Rule, affine, modules
from zoo.families.seq2seq.m2m_100 import FIELDS


def _every(step: int, depth: int) -> list[bool]:
    """Mixtures in every n-th layer."""
    return [step > 0 and (layer + 1) % step == 0 for layer in range(depth)]


def _dropped(kept: float) -> float:
    if not 0 < kept <= 1:
        raise UnfitError("weights of experts with a scale above 1")
    return round(1 - kept, 12)


_KEPT = f.Mapped(
    f.Checked(
        f.Float("moe_token_dropout", default=0.2),
        lambda dropped: 0 <= dropped < 1,
        "must be at least 0 and less than 1",
    ),
    lambda dropped: 1 - dropped,
    _dropped,
)
"""The part of the experts' results that training does not drop."""


def _mixed(side: str, dense: Data) -> tuple[Template, LayerVariation]:
    mixture = {
        "kind": "mixture",
        "experts": f.Int("num_experts", default=128),
        "top_k": 2,
        "expert": dense,
        "router": {"bias": f.Bool("router_bias", default=False), "scale": _KEPT},
    }
    return mixture, CountedMixtures(dense, f.Int(f"{side}_sparse_step", default=4), _every)


def _stack_rules(side: str) -> tuple[Rule, ...]:
    stored, ours = f"{side}.layers.{{layer}}.ffn.", f"{side}.blocks.{{layer}}.feed_forward."
    expert = f"{stored}experts.expert_{{expert}}."
    return (
        *stack_rules(side, "cross_attention", "ffn.", "ff_layer_norm"),
        *affine(f"{stored}router.classifier", f"{ours}router"),
        *modules({"fc1": "up", "fc2": "down"}, expert, f"{ours}experts."),
    )


_FIELDS = replace(FIELDS, layers=replace(FIELDS.layers, mixed=_mixed))
FAMILIES = (
    _FIELDS.family(
        "nllb-moe",
        {
            "NllbMoeForConditionalGeneration": HeadClass("language_modeling", {"tie_embeddings": True}),
            "NllbMoeModel": BODY,
        },
        fixed={
            "moe_eval_capacity_token_fraction": (
                1.0,
                "otherwise what a token gets depends on the rest of its batch",
            ),
            "second_expert_policy": ("all", "otherwise the second expert is drawn"),
            "router_dtype": ("float32", "routing is computed in float32"),
        },
        tensors=bart_tensors("nllb-moe", *_stack_rules("encoder"), *_stack_rules("decoder")),
        training=(
            "expert_capacity",
            "batch_prioritized_routing",
            "normalize_router_prob_before_dropping",
            "router_ignore_padding_tokens",
            "router_z_loss_coef",
            *TRAINING,
        ),
    ),
)
