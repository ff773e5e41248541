"""CodeGen (Nijkamp et al., 2022): ``CodeGenConfig``, ``CodeGenModel`` and its head: GPT-J with fused projections.

Queries, values and keys are stored as one, in four groups of heads.
"""

from __future__ import annotations

from zoo.families.common import fields as f
from zoo.families.common.decoders import decoder_tensors, query_key_value
from zoo.families.common.family import Family
from zoo.families.common.heads import SUMMARY, decoder_classes
from zoo.families.common.tensors import Rule, modules, weights
from zoo.families.common.transforms import Grouped
from zoo.families.decoders.gptj import gptj_body

_GROUPS = 4
_HEADS = f.Checked(
    f.Int("n_head", "num_attention_heads", default=16),
    lambda heads: heads % _GROUPS == 0,
    f"must be a multiple of {_GROUPS}: heads are stored in {_GROUPS} groups",
)

_STORED, _BLOCK = "h.{layer}", "decoder.blocks.{layer}"
_QUERY, _KEY, _VALUE = (f"{module}.weight" for module in query_key_value(_BLOCK))
_LAYER = {"ln_1": "norm", "mlp.fc_in": "feed_forward.up", "mlp.fc_out": "feed_forward.down"}
_TENSORS = decoder_tensors(
    "codegen",
    "transformer.",
    *modules({"wte": "embedding.token", "ln_f": "decoder.final_norm"}),
    *modules(_LAYER, f"{_STORED}.", f"{_BLOCK}."),
    *weights({"attn.out_proj": "attention.output"}, f"{_STORED}.", f"{_BLOCK}."),
    Rule(f"{_STORED}.attn.qkv_proj.weight", (_QUERY, _VALUE, _KEY), Grouped(_GROUPS)),
    unused=("h.*.attn.causal_mask", "h.*.attn.bias", "h.*.attn.masked_bias"),
)

FAMILIES = (
    Family(
        "codegen",
        _TENSORS,
        gptj_body(_HEADS),
        decoder_classes(
            "CodeGen",
            bias=True,
            without=("ForSequenceClassification", "ForTokenClassification", "ForQuestionAnswering"),
        ),
        fixed={
            "scale_attn_weights": (True, "the reference divides scores by the square root of the head width")
        },
        ignored=("n_ctx", *SUMMARY),
    ),
)
