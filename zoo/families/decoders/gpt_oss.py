"""GPT-OSS (OpenAI, 2025): ``GptOssConfig``, ``GptOssModel`` and its heads.

Llama with sinks, and with all experts of a layer as one tensor: d_in x d_out, gate and up by turns.
"""

from __future__ import annotations

from zoo.families.common import fields as f
from zoo.families.common.family import Family
from zoo.families.common.heads import decoder_classes
from zoo.families.common.layers import Windows, all_but_every
from zoo.families.common.llama_like import (
    BLOCK,
    LAYER,
    WHOLE_HEADS,
    LlamaFields,
    llama_tensors,
)
from zoo.families.common.mixtures import TRAINING
from zoo.families.common.rope import RopeParameters
from zoo.families.common.template import Template
from zoo.families.common.tensors import Rule, affine, same
from zoo.families.common.transforms import Interleaved, Transform, Transposed

_FIELDS = LlamaFields(
    vocab_size=201088, hidden_size=2880, intermediate_size=2880, layers=36, heads=64, kv_heads=8, head_dim=64,
    context=131072, eps=1e-5,
)  # fmt: skip
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

FAMILIES = (
    Family(
        "gpt_oss",
        llama_tensors(
            "gpt_oss",
            *expert_rules(BLOCK, Interleaved(1)),
        ),
        _FIELDS.body(
            attention={"bias": f.Bias("attention_bias", default=True), "sinks": True},
            feed_forward=mixture(_FIELDS.hidden),
            more={"*": f.Stated(hidden_act="silu")},
            position=_FIELDS.rope(
                theta=150000.0, parameters=RopeParameters(unstated=YARN), whole=WHOLE_HEADS
            ),
            varies=(
                Windows(
                    "local",
                    f.Int("sliding_window", default=128, null=True),
                    all_but_every(2),
                ),
            ),
        ),
        decoder_classes("GptOss", without=("ForQuestionAnswering",)),
        fixed={
            "swiglu_alpha": ALPHA,
            "hidden_act": ("silu", "the experts are gated by x * sigmoid(1.702 x), whatever it says"),
        },
        ignored=(
            "initial_context_length",
            "experts_per_token",
            *TRAINING,
        ),  # of early configs, restated elsewhere
    ),
)
