"""EXAONE 3 and 3.5 (LG AI Research, 2024): ``ExaoneConfig``, which transformers computes with Llama's classes.

Published configs and tensors have names of their own.
"""

from __future__ import annotations

import re
from dataclasses import replace

from zoo.families.common import fields as f
from zoo.families.common.family import Family
from zoo.families.common.heads import decoder_classes
from zoo.families.common.llama_like import LLAMA, WHOLE_HEADS, LlamaFields
from zoo.families.common.tensors import Rule

_FIELDS = LlamaFields(vocab_size=102400, intermediate_size=14336, kv_heads=8, context=4096)
_FIELDS.depth = f.Depth("num_hidden_layers", "num_layers", default=32)
_NORM = {"kind": "rms_norm", "eps": f.Float("rms_norm_eps", "layer_norm_epsilon", default=1e-5)}
_NAMES = (
    ("^embed_tokens", "wte"),
    (r"^norm\.", "ln_f."),
    (r"^layers\.", "h."),
    (r"self_attn\.o_proj", "self_attn.out_proj"),
    (r"self_attn\.", "attn.attention."),
    ("input_layernorm", "ln_1"),
    ("post_attention_layernorm", "ln_2"),
    (r"mlp\.gate_proj", "mlp.c_fc_0"),
    (r"mlp\.up_proj", "mlp.c_fc_1"),
    (r"mlp\.down_proj", "mlp.c_proj"),
)
"""Llama's names, and the published ones."""


def _published(rule: Rule) -> Rule:
    """Return a rule of Llama under the published name, which also reads Llama's."""
    name = rule.stored
    for pattern, other in _NAMES:
        name = re.sub(pattern, other, name)
    return replace(rule, stored=name, also=(f"model.{rule.stored}",))


_TENSORS = replace(
    LLAMA,
    name="exaone",
    rules=tuple(map(_published, LLAMA.rules)),
    prefix="transformer.",
    unused=(*LLAMA.unused, "h.*.rotary.inv_freq"),
)
_CLASSES = decoder_classes("Llama")

FAMILIES = (
    Family(
        "exaone",
        _TENSORS,
        _FIELDS.body(
            attention={"bias": f.Bias("attention_bias", default=False)},
            feed_forward=_FIELDS.feed_forward(
                activation=f.Activation("hidden_act", "silu", also=("activation_function",)),
                bias=f.Bool("mlp_bias", default=False),
            ),
            position=_FIELDS.rope(whole=WHOLE_HEADS, theta=500000.0),
            norm=_NORM,
        ),
        {**_CLASSES, "ExaoneForCausalLM": _CLASSES["LlamaForCausalLM"]},
    ),
)
