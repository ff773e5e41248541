"""Phi-3 (Abdin et al., 2024): ``Phi3Config``, ``Phi3Model`` and its heads.

Llama with queries, keys and values stored as one, and gate and up too.
"""

from __future__ import annotations

from zoo.families.common.decoders import query_key_value
from zoo.families.common.family import Family
from zoo.families.common.fields import Float, Int
from zoo.families.common.heads import decoder_classes
from zoo.families.common.llama_like import BLOCK, GATE_UP, LAYER, LlamaFields, llama_tensors
from zoo.families.common.rope import RopeParameters
from zoo.families.common.tensors import fused

_FIELDS = LlamaFields(vocab_size=32064, hidden_size=3072, intermediate_size=8192, context=4096, eps=1e-5)
_SCALINGS = {"longrope": "longrope", "su": "longrope", "yarn": "longrope"}
"""Early configs have other names for the one scaling that the reference takes."""

_BIASES = ("attention_bias", "mlp_bias", "lm_head_bias")
_QUERY_KEY_VALUE = fused(f"{LAYER}self_attn.qkv_proj", query_key_value(BLOCK.rstrip(".")))
_SEPARATE = ("q_proj", "k_proj", "v_proj", "gate_proj", "up_proj")

FAMILIES = (
    Family(
        "phi3",
        llama_tensors("phi3", *_QUERY_KEY_VALUE, *GATE_UP, without=_SEPARATE),
        _FIELDS.body(
            attention={"bias": False, "window": Int("sliding_window")},
            position=_FIELDS.rope(parameters=RopeParameters(_SCALINGS, original=4096)),
            dropout=Float("resid_pdrop", default=0.0),
        ),
        decoder_classes("Phi3", without=("ForQuestionAnswering",)),
        fixed={
            **dict.fromkeys(_BIASES, (False, "the reference has no biases")),
            **dict.fromkeys(
                ("full_attn_mod", "interpolate_factor"), (1, "the reference does not read this field")
            ),
        },
        ignored=("embd_pdrop",),  # of no effect in the reference
    ),
)
