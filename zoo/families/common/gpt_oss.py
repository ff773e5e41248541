"""Common parts of GPT-OSS and its encoder: experts with biases as one tensor, sinks, and the usual scaling of positions."""

from __future__ import annotations

from zoo.families.common import fields as f
from zoo.families.common.llama_like import LAYER
from zoo.families.common.template import Template
from zoo.families.common.tensors import Rule, affine, same
from zoo.families.common.transforms import Transform, Transposed

YARN = {
    "rope_type": "yarn", "factor": 32.0, "beta_fast": 32.0, "beta_slow": 1.0, "truncate": False,
    "original_max_position_embeddings": 4096,
}  # fmt: skip


def mixture(hidden: Template) -> dict[str, Template]:
    """The experts, with biases, of a width."""
    return {
        "kind": "mixture",
        "experts": f.Int("num_local_experts", "num_experts", default=128),
        "top_k": f.Int("num_experts_per_tok", default=4),
        "router": {"bias": True},
        "expert": {
            "kind": "gated",
            "hidden": hidden,
            "activation": "quick_gelu",
            "bias": True,
            "limit": f.Float("swiglu_limit", default=7.0),
            "up_offset": 1.0,
        },
    }


def expert_rules(block: str, gate_up: Transform) -> tuple[Rule, ...]:
    """The rules of sinks and experts, whose gates and ups are one tensor."""
    stored, ours = f"{LAYER}mlp.experts", f"{block}feed_forward.experts"
    return (
        same(f"{LAYER}self_attn.sinks", f"{block}attention.sinks"),
        *affine(f"{LAYER}mlp.router", f"{block}feed_forward.router"),
        Rule(f"{stored}.gate_up_proj", (f"{ours}.gate.weight", f"{ours}.up.weight"), Transposed(gate_up)),
        Rule(f"{stored}.gate_up_proj_bias", (f"{ours}.gate.bias", f"{ours}.up.bias"), gate_up),
        Rule(f"{stored}.down_proj", (f"{ours}.down.weight",), Transposed()),
        same(f"{stored}.down_proj_bias", f"{ours}.down.bias"),
    )


ALPHA = (1.702, "it is that of quick_gelu")
