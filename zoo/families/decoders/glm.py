"""GLM-4 (GLM team, 2024): ``GlmConfig``, ``Glm4Config`` and their models.

Half of each head rotates, in neighbouring pairs; from GLM-4-0414 on, a norm follows each branch too.
"""

from __future__ import annotations

from zoo.families.common import fields as f
from zoo.families.common.family import Family
from zoo.families.common.heads import decoder_classes
from zoo.families.common.llama_like import GATE_UP, LlamaFields, layer_weights, llama_tensors
from zoo.families.common.template import Template

_FIELDS = LlamaFields(
    vocab_size=151552,
    intermediate_size=13696,
    layers=40,
    kv_heads=2,
    head_dim=128,
    context=131072,
    eps=1.5625e-7,
)
_BIAS = f.Bool("attention_bias", default=True)
_SEPARATE = ("gate_proj", "up_proj")
_NORMS = {
    "input_layernorm": "attention_norm",
    "post_self_attn_layernorm": "attention_output_norm",
    "post_attention_layernorm": "feed_forward_norm",
    "post_mlp_layernorm": "feed_forward_output_norm",
}


_BIASES = {"query": _BIAS, "key": _BIAS, "value": _BIAS, "output": False}


def glm_body(
    kind: str, fields: LlamaFields = _FIELDS, bias: Template = _BIASES, position: Template = None
) -> Template:
    """Return the template of GLM-4's decoders: by default with half of each head rotated."""
    half = fields.rope(fraction=0.5, layout="interleaved")
    return fields.body(kind=kind, attention={"bias": bias}, position=position or half)


GLM4_TENSORS = llama_tensors("glm4", *GATE_UP, *layer_weights(_NORMS), without=("layernorm", *_SEPARATE))


FAMILIES = (
    Family(
        "glm",
        llama_tensors("glm", *GATE_UP, without=_SEPARATE),
        glm_body("pre_norm"),
        decoder_classes("Glm", without=("ForQuestionAnswering",)),
    ),
    Family(
        "glm4",
        GLM4_TENSORS,
        glm_body("sandwich"),
        decoder_classes("Glm4", without=("ForQuestionAnswering",)),
    ),
)
