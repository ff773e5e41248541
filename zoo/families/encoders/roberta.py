"""RoBERTa (Liu et al., 2019) and the models with its layers: XLM-RoBERTa (Conneau et al., 2020), CamemBERT (Martin et al., 2020),
data2vec for text (Baevski et al., 2022), XLM-R XL (Goyal et al., 2021),
I-BERT (Kim et al., 2021) in floating point, and RoBERTa with norms before its branches (Ott et al., 2019, fairseq).

BERT with other names for the heads.  Positions start after the padding token's id, as in fairseq: the rows of the table
up to it are unused.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from zoo.families.common import fields as f
from zoo.families.common.decoders import layer_norm
from zoo.families.common.encoders import (
    BERT_RULES,
    CLASSIFIER_DROPOUT,
    EMBEDDINGS,
    FIXED,
    IGNORED,
    RENAMED,
    ROBERTA_HEADS,
    ROBERTA_OPTIONAL,
    ROBERTA_OUTSIDE,
    UNUSED,
    BertFields,
    classifiers,
    masked,
    pooler,
)
from zoo.families.common.family import Family
from zoo.families.common.template import Field, Template
from zoo.families.common.tensors import Tensors, affine, modules, projections

_OFFSET = f.after_padding()

TENSORS = Tensors(
    "roberta",
    BERT_RULES,
    prefix="roberta.",
    outside=ROBERTA_OUTSIDE,
    heads=ROBERTA_HEADS,
    renamed=RENAMED,
    optional=ROBERTA_OPTIONAL,
    unused=UNUSED,
)


def _family(
    model_type: str,
    prefix: str,
    fields: BertFields,
    tensors: Tensors = TENSORS,
    *,
    fixed: Mapping[str, tuple[Template, str]] = FIXED,
    dropout: Field = CLASSIFIER_DROPOUT,
    ignored: tuple[str, ...] = ("classifier_dropout",),  # of some heads
    **parts: Any,
) -> Family:
    body: dict[str, Any] = {
        **fields.body(**parts),
        "context_length": f.Rows("max_position_embeddings", default=512, start=_OFFSET),
        "position": {"kind": "learned", "offset": _OFFSET},
    }
    if tensors is _EXTRA_LARGE:
        body["embedding"] = {**body["embedding"], "norm": None}
    classes = {
        f"{prefix}Model": pooler(),
        f"{prefix}ForMaskedLM": masked("gelu"),
        **classifiers(prefix, "tanh", dropout),
    }
    return Family(model_type, tensors, body, classes, fixed=fixed, ignored=(*ignored, *IGNORED))


_DATA2VEC = replace(TENSORS, name="data2vec-text", prefix="data2vec_text.")
_PRE_NORM = replace(
    TENSORS,
    name="roberta-prelayernorm",
    prefix="roberta_prelayernorm.",
    rules=(
        *EMBEDDINGS,
        *modules(
            {
                **projections("attention.self.", "query key value"),
                "attention.LayerNorm": "attention_norm",
                "attention.output.dense": "attention.output",
                "intermediate.LayerNorm": "feed_forward_norm",
                "intermediate.dense": "feed_forward.up",
                "output.dense": "feed_forward.down",
            },
            "encoder.layer.{layer}.",
            "encoder.blocks.{layer}.",
        ),
        *affine("LayerNorm", "encoder.final_norm"),
    ),
)

_EXTRA_LARGE = replace(
    TENSORS,
    name="xlm-roberta-xl",
    rules=(
        *(rule for rule in EMBEDDINGS if "LayerNorm" not in rule.stored),
        *modules(
            {
                "attention.self_attn_layer_norm": "attention_norm",
                **projections("attention.self.", "query key value"),
                "attention.output.dense": "attention.output",
                "LayerNorm": "feed_forward_norm",
                "intermediate.dense": "feed_forward.up",
                "output.dense": "feed_forward.down",
            },
            "encoder.layer.{layer}.",
            "encoder.blocks.{layer}.",
        ),
        *affine("encoder.LayerNorm", "encoder.final_norm"),
    ),
)

_INTEGERS = replace(
    TENSORS,
    name="ibert",
    prefix="ibert.",
    unused=(*UNUSED, "*_scaling_factor", "*_integer", "*.x_min", "*.x_max", "*.LayerNorm.shift"),
)

FAMILIES = (
    _family("roberta", "Roberta", BertFields(50265)),
    _family("xlm-roberta", "XLMRoberta", BertFields(30522)),
    _family("camembert", "Camembert", BertFields(30522)),
    _family("data2vec-text", "Data2VecText", BertFields(30522), _DATA2VEC),
    _family("roberta-prelayernorm", "RobertaPreLayerNorm", BertFields(50265), _PRE_NORM, kind="pre_norm"),
    _family(
        "xlm-roberta-xl",
        "XLMRobertaXL",
        BertFields(250880, d_model=2560, heads=32, hidden=10240, depth=36),
        _EXTRA_LARGE,
        kind="pre_norm",
        norm=layer_norm("layer_norm_eps"),
    ),
    _family(
        "ibert",
        "IBert",
        BertFields(30522),
        _INTEGERS,
        fixed={
            **FIXED,
            "quant_mode": (False, "arithmetic of integers in the layers themselves is not supported"),
        },
        dropout=f.Float("hidden_dropout_prob", default=0.1),
        ignored=("force_dequant",),
    ),
)
