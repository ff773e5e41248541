"""Command R (Cohere, 2024), Aya 23 and Command R7B: ``CohereConfig``, ``Cohere2Config`` and their models.

Parallel branches after one layer norm without bias, rotation of neighbouring dimensions, and scaled scores of tokens.
"""

from __future__ import annotations

from zoo.families.common import fields as f
from zoo.families.common.decoders import layer_norm
from zoo.families.common.family import Family
from zoo.families.common.heads import BODY, language_modeling
from zoo.families.common.layer_lists import all_but_every_fourth
from zoo.families.common.llama_like import (
    BLOCK,
    LAYER,
    WHOLE_HEADS,
    LlamaFields,
    layer_weights,
    llama_tensors,
)
from zoo.families.common.template import Template
from zoo.families.common.tensors import same
from zoo.families.common.unrotated_layers import GlobalLayers
from zoo.families.common.windowed_layers import Windows

_FIELDS = LlamaFields(
    vocab_size=256000, hidden_size=8192, intermediate_size=22528, layers=40, heads=64, context=8192
)
_NORM = layer_norm("layer_norm_eps", bias=False)
_BLOCK: dict[str, Template] = {"kind": "parallel", "norm": _NORM}
_BIAS = f.Bias("attention_bias", default=False)
_CLASS = language_modeling(tied=True, bias=False, scale=f.Factor("logit_scale", default=0.0625))
_TENSORS = llama_tensors(
    "cohere",
    *layer_weights({"input_layernorm": "norm"}),
    same(f"{LAYER}self_attn.q_norm.weight", f"{BLOCK}attention.query_norm.weight"),
    same(f"{LAYER}self_attn.k_norm.weight", f"{BLOCK}attention.key_norm.weight"),
    without=("norm",),
)
_WINDOWS = Windows("local", f.Int("sliding_window", default=4096, null=True), all_but_every_fourth)

FAMILIES = (
    Family(
        "cohere",
        _TENSORS,
        _FIELDS.body(
            **_BLOCK,
            attention={
                "bias": _BIAS,
                "qk_norm": f.When(f.Bool("use_qk_norm", default=False), {"norm": _NORM, "over": "each_head"}),
            },
            position=_FIELDS.rope(theta=500000.0, whole=WHOLE_HEADS, layout="interleaved"),
        ),
        {"CohereForCausalLM": _CLASS, "CohereModel": BODY},
        ignored=("logit_scale",),  # by the body alone
    ),
    Family(
        "cohere2",
        _TENSORS,
        _FIELDS.body(
            **_BLOCK,
            attention={"bias": _BIAS},
            position=_FIELDS.rope(whole=WHOLE_HEADS, layout="interleaved"),
            varies=(_WINDOWS, GlobalLayers(_WINDOWS)),
        ),
        {"Cohere2ForCausalLM": _CLASS, "Cohere2Model": BODY},
        ignored=("logit_scale",),
    ),
)
