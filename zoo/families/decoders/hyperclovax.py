"""HyperCLOVA X SEED Think (NAVER Cloud, 2025): ``HyperCLOVAXConfig``, ``HyperCLOVAXModel`` and its head: Granite with norms after its branches."""

from __future__ import annotations

from zoo.families.common import fields as f
from zoo.families.common.family import Family
from zoo.families.common.heads import BODY, language_modeling
from zoo.families.common.llama_like import LlamaFields, layer_weights, llama_tensors
from zoo.families.decoders.granite import MULTIPLIED, score_scale

_FIELDS = LlamaFields()

FAMILIES = (
    Family(
        "hyperclovax",
        llama_tensors(
            "hyperclovax",
            *layer_weights({"post_norm1": "attention_output_norm", "post_norm2": "feed_forward_output_norm"}),
        ),
        _FIELDS.body(
            kind=f.Choice("use_post_norm", {True: "sandwich", False: "pre_norm"}, True),
            attention={
                "bias": f.Bias("attention_bias", default=False),
                "scale": score_scale(),
            },
            feed_forward=_FIELDS.feed_forward(bias=f.Bool("mlp_bias", default=False)),
            **MULTIPLIED,
        ),
        {
            "HyperCLOVAXForCausalLM": language_modeling(
                tied=False, bias=False, scale=f.Factor("logits_scaling")
            ),
            "HyperCLOVAXModel": BODY,
        },
        ignored=("logits_scaling",),  # by the body alone
    ),
)
