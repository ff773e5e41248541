"""GPT-OSS (OpenAI, 2025): ``GptOssConfig``, ``GptOssModel`` and its heads.

Llama with sinks, and with all experts of a layer as one tensor: d_in x d_out, gate and up by turns.
"""

from __future__ import annotations

from zoo.families.common import fields as f
from zoo.families.common.family import Family
from zoo.families.common.heads import decoder_classes
from zoo.families.common.layers import Windows
from zoo.families.common.llama_like import (
    BLOCK,
    LAYER,
    WHOLE_HEADS,
    LlamaFields,
    layer_modules,
    llama_tensors,
)
from zoo.families.common.mixtures import TRAINING
from zoo.families.common.rope import RopeParameters
from zoo.families.common.tensors import Rule, same
from zoo.families.common.transforms import Interleaved, Transposed

_FIELDS = LlamaFields(
    vocab_size=201088, hidden_size=2880, intermediate_size=2880, layers=36, heads=64, kv_heads=8, head_dim=64,
    context=131072, eps=1e-5,
)  # fmt: skip
_YARN = {
    "rope_type": "yarn", "factor": 32.0, "beta_fast": 32.0, "beta_slow": 1.0, "truncate": False,
    "original_max_position_embeddings": 4096,
}  # fmt: skip
_MIXTURE = {
    "kind": "mixture",
    "experts": f.Int("num_local_experts", "num_experts", default=128),
    "top_k": f.Int("num_experts_per_tok", default=4),
    "router": {"bias": True},
    "expert": {
        "kind": "gated",
        "hidden": _FIELDS.hidden,
        "activation": "quick_gelu",
        "bias": True,
        "limit": f.Float("swiglu_limit", default=7.0),
        "up_offset": 1.0,
    },
}
_EXPERTS, _OURS = f"{LAYER}mlp.experts", f"{BLOCK}feed_forward.experts"
_GATE_UP = Transposed(Interleaved(1))

FAMILIES = (
    Family(
        "gpt_oss",
        llama_tensors(
            "gpt_oss",
            same(f"{LAYER}self_attn.sinks", f"{BLOCK}attention.sinks"),
            *layer_modules({"mlp.router": "feed_forward.router"}),
            Rule(f"{_EXPERTS}.gate_up_proj", (f"{_OURS}.gate.weight", f"{_OURS}.up.weight"), _GATE_UP),
            Rule(f"{_EXPERTS}.gate_up_proj_bias", (f"{_OURS}.gate.bias", f"{_OURS}.up.bias"), Interleaved(1)),
            Rule(f"{_EXPERTS}.down_proj", (f"{_OURS}.down.weight",), Transposed()),
            same(f"{_EXPERTS}.down_proj_bias", f"{_OURS}.down.bias"),
        ),
        _FIELDS.body(
            attention={"bias": f.Bias("attention_bias", default=True), "sinks": True},
            feed_forward=_MIXTURE,
            more={"*": f.Stated(hidden_act="silu")},
            position=_FIELDS.rope(
                theta=150000.0, parameters=RopeParameters(unstated=_YARN), whole=WHOLE_HEADS
            ),
            varies=(
                Windows(
                    "local",
                    f.Int("sliding_window", default=128, null=True),
                    lambda config, depth: [layer % 2 == 0 for layer in range(depth)],
                ),
            ),
        ),
        decoder_classes("GptOss", without=("ForQuestionAnswering",)),
        fixed={
            "swiglu_alpha": (1.702, "it is that of quick_gelu"),
            "hidden_act": ("silu", "the experts are gated by x * sigmoid(1.702 x), whatever it says"),
        },
        ignored=(
            "initial_context_length",
            "experts_per_token",
            *TRAINING,
        ),  # of early configs, restated elsewhere
    ),
)
