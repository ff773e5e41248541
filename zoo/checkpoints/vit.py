"""ViT (Dosovitskiy et al., 2020): ``ViTModel``, ``ViTForImageClassification``."""

from __future__ import annotations

from zoo.checkpoints.family import Family, Rule, affine
from zoo.checkpoints.transforms import Unsqueezed

_STORED, _BLOCK = "encoder.layer.{layer}", "encoder.blocks.{layer}"

VIT = Family(
    name="vit",
    model_types=("vit",),
    prefix="vit.",
    outside=("classifier.",),
    rules=(
        Rule("embeddings.cls_token", ("embedding.class_token.weight",), Unsqueezed()),
        Rule("embeddings.position_embeddings", ("embedding.position.table.weight",), Unsqueezed()),
        *affine("embeddings.patch_embeddings.projection", "embedding.patch"),
        *affine(f"{_STORED}.layernorm_before", f"{_BLOCK}.attention_norm"),
        *affine(f"{_STORED}.attention.attention.query", f"{_BLOCK}.attention.query"),
        *affine(f"{_STORED}.attention.attention.key", f"{_BLOCK}.attention.key"),
        *affine(f"{_STORED}.attention.attention.value", f"{_BLOCK}.attention.value"),
        *affine(f"{_STORED}.attention.output.dense", f"{_BLOCK}.attention.output"),
        *affine(f"{_STORED}.layernorm_after", f"{_BLOCK}.feed_forward_norm"),
        *affine(f"{_STORED}.intermediate.dense", f"{_BLOCK}.feed_forward.up"),
        *affine(f"{_STORED}.output.dense", f"{_BLOCK}.feed_forward.down"),
        *affine("layernorm", "encoder.final_norm"),
    ),
    heads={
        "pooler": affine("pooler.dense", "head.dense"),
        "classification": affine("classifier", "head.labels"),
    },
    optional=("pooler.*", "classifier.*", "embeddings.mask_token"),
)
