"""StarCoder (Li et al., 2023): ``GPTBigCodeConfig``, ``GPTBigCodeModel`` and its heads: GPT-2 with one key/value head.

Queries, keys and values are stored as one: all queries, then key and value; head by head where each head has its own.
"""

from __future__ import annotations

from zoo.families.common import fields as f
from zoo.families.common.config import Config
from zoo.families.common.decoders import decoder_tensors, grouped, query_key_value
from zoo.families.common.family import Family
from zoo.families.common.heads import decoder_classes
from zoo.families.common.tensors import fused, modules, same
from zoo.families.decoders.gpt2 import HEADS, gpt2_body

_MULTI_QUERY = f.Bool("multi_query", default=True)
_KIND = f.Kinds(_MULTI_QUERY, {True: {"kind": "multi_query"}, False: {"kind": "multi_head"}})

_STORED, _BLOCK = "h.{layer}", "decoder.blocks.{layer}"
_LAYER = {
    "ln_1": "attention_norm",
    "attn.c_proj": "attention.output",
    "ln_2": "feed_forward_norm",
    "mlp.c_fc": "feed_forward.up",
    "mlp.c_proj": "feed_forward.down",
}
_TENSORS = decoder_tensors(
    "gpt_bigcode",
    "transformer.",
    *modules({"wte": "embedding.token", "ln_f": "decoder.final_norm"}),
    same("wpe.weight", "embedding.position.table.weight"),
    *modules(_LAYER, f"{_STORED}.", f"{_BLOCK}."),
    *fused(f"{_STORED}.attn.c_attn", query_key_value(_BLOCK), grouped, grouped),
    unused=("h.*.attn.bias", "h.*.attn.masked_bias"),
)


def _kv_heads(config: Config) -> int:
    heads: int = HEADS.read(config)
    return 1 if _MULTI_QUERY.read(config) else heads


FAMILIES = (
    Family(
        "gpt_bigcode",
        _TENSORS,
        gpt2_body("gelu_pytorch_tanh", {"*": _KIND}),
        decoder_classes("GPTBigCode", tied=True, without=("ForQuestionAnswering",)),
        fixed={
            "add_cross_attention": (False, "GPT-BigCode with an encoder is not supported"),
            "num_key_value_heads": (f.Derived(_kv_heads), "it follows from multi_query"),
        },
        ignored=("attention_softmax_in_fp32", "scale_attention_softmax_in_fp32"),  # of reduced precisions
    ),
)
