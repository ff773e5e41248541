"""ViT (Dosovitskiy et al., 2020), and the models with its layers: MSN (Assran et al., 2022), I-JEPA (Assran et al., 2023),
and the encoder of masked autoencoders (MAE: He et al., 2021), which reads all patches here."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from zoo.families.common import fields as f
from zoo.families.common.blocks import mlp, multi_head
from zoo.families.common.decoders import layer_norm
from zoo.families.common.encoders import NORM
from zoo.families.common.family import Family, HeadClass
from zoo.families.common.heads import BODY as NO_HEAD
from zoo.families.common.heads import Labels
from zoo.families.common.held import LAYERS_OF_IMAGES, also_named
from zoo.families.common.images import patches
from zoo.families.common.layers import Layers
from zoo.families.common.template import Template
from zoo.families.common.tensors import Rule, Tensors, affine, modules, projections
from zoo.families.common.transforms import Unsqueezed

_WIDTH = f.Int("hidden_size", default=768)
_DROPOUT = f.Float("hidden_dropout_prob", default=0.0)
_BIAS = f.Bool("qkv_bias", default=True)


def body(norm: Template) -> dict[str, Any]:
    """The template of a ViT."""
    return {
        "architecture": "encoder",
        "d_model": _WIDTH,
        "position": {"kind": "learned"},
        "embedding": patches(224, 16, dropout=_DROPOUT),
        "encoder": Layers(
            f.Depth("num_hidden_layers", default=12),
            {
                "kind": "pre_norm",
                "norm": norm,
                "attention": multi_head(
                    12,
                    dropout=f.Float("attention_probs_dropout_prob", default=0.0),
                    bias={"query": _BIAS, "key": _BIAS, "value": _BIAS, "output": True},
                ),
                "feed_forward": mlp(3072, "gelu"),
                "dropout": _DROPOUT,
            },
        ),
        "initialization": f.normal(),
    }


BODY = body(NORM)

_LAYER = {
    "layernorm_before": "attention_norm",
    **projections("attention.attention.", "query key value"),
    "attention.output.dense": "attention.output",
    "layernorm_after": "feed_forward_norm",
    "intermediate.dense": "feed_forward.up",
    "output.dense": "feed_forward.down",
}
_AROUND = {"embeddings.patch_embeddings.projection": "embedding.patch", "layernorm": "encoder.final_norm"}
RULES = also_named(
    (
        Rule("embeddings.cls_token", ("embedding.class_token.weight",), Unsqueezed()),
        Rule("embeddings.position_embeddings", ("embedding.position.table.weight",), Unsqueezed()),
        *modules(_AROUND),
        *modules(_LAYER, "encoder.layer.{layer}.", "encoder.blocks.{layer}."),
    ),
    *LAYERS_OF_IMAGES,
)
HEADS = {
    "pooler": affine("pooler.dense", "head.dense"),
    "classification": affine("classifier", "head.labels"),
}
OPTIONAL = ("pooler.*", "classifier.*", "embeddings.mask_token")

CLASSIFIER = HeadClass("classification", {"labels": Labels()})
POOLER = HeadClass("pooler", {"activation": f.Activation("pooler_act", "tanh")})
FIXED = {"pooler_output_size": (_WIDTH, "the pooler keeps the width")}
IGNORED = ("encoder_stride", "pooler_act")
"""Fields of the image decoder, and of the pooler."""

_TENSORS = Tensors("vit", RULES, prefix="vit.", outside=("classifier.",), heads=HEADS, optional=OPTIONAL)

FAMILIES = (
    Family(
        "vit",
        _TENSORS,
        BODY,
        {"ViTForImageClassification": CLASSIFIER, "ViTModel": POOLER},
        fixed=FIXED,
        ignored=IGNORED,
    ),
    Family(
        "vit_msn",
        replace(_TENSORS, name="vit_msn"),
        body(layer_norm("layer_norm_eps", default=1e-6)),
        {"ViTMSNForImageClassification": CLASSIFIER, "ViTMSNModel": NO_HEAD},
    ),
    Family(
        "ijepa",
        replace(_TENSORS, name="ijepa", prefix="ijepa."),
        {**BODY, "embedding": {**BODY["embedding"], "class_token": False}},
        {
            "IJepaModel": NO_HEAD,
            "IJepaForImageClassification": HeadClass(
                "classification", {"labels": Labels(), "pooling": "mean"}
            ),
        },
        fixed=FIXED,
        ignored=("pooler_act",),
    ),
    Family(
        "vit_mae",
        replace(_TENSORS, name="vit_mae", optional=("decoder.*",)),
        {**BODY, "*": f.Stated(mask_ratio=0.0)},
        {"ViTMAEModel": NO_HEAD},
        refused={"ViTMAEForPreTraining": "whose decoder paints the patches that are left out at random"},
        ignored=(
            *("mask_ratio", "norm_pix_loss", "decoder_num_attention_heads", "decoder_hidden_size"),
            *("decoder_num_hidden_layers", "decoder_intermediate_size"),
        ),
    ),
)
