"""BEiT (Bao et al., 2021) and data2vec for images (Baevski et al., 2022), at the image size of the config.

At other image sizes the reference interpolates positions and biases.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from specs.kinds.patch_positions import RelativeBias2d
from specs.kinds.position import Learned, NoPosition
from zoo.families.common import fields as f
from zoo.families.common.blocks import mlp, multi_head
from zoo.families.common.config import Config
from zoo.families.common.encoders import NORM
from zoo.families.common.family import Family, HeadClass
from zoo.families.common.heads import BODY, Labels
from zoo.families.common.held import LAYERS_OF_IMAGES, also_named
from zoo.families.common.images import MEAN_POOLING, NORM_UNLESS_MEAN, patches
from zoo.families.common.layers import Layers
from zoo.families.common.template import Data, Field, FieldContext, read
from zoo.families.common.tensors import Rule, Tensors, affine, modules, projections, same
from zoo.families.common.transforms import Unsqueezed

_ABSOLUTE = f.Bool("use_absolute_position_embeddings", default=False)
_PER_LAYER = f.Bool("use_relative_position_bias", default=False)
_SHARED = f.Bool("use_shared_relative_position_bias", default=False)


class _BeitPosition(Field):
    """Positions that are added, biases of each layer, biases of all layers, or none."""

    component = Learned | RelativeBias2d | NoPosition

    def read(self, config: Config) -> Data:
        absolute, per_layer, shared = (field.read(config) for field in (_ABSOLUTE, _PER_LAYER, _SHARED))
        if absolute + per_layer + shared > 1:
            config.refuse(
                _SHARED.names[0] if shared else _PER_LAYER.names[0],
                "must not be true with other positions: one kind of position is supported",
                "Use one of them.",
            )
        if per_layer or shared:
            return {"kind": "relative_bias_2d", "per_layer": per_layer}
        return {"kind": "learned" if absolute else "none"}

    def write(self, value: Any, context: FieldContext) -> Data:
        relative = isinstance(value, RelativeBias2d)
        return {
            **_ABSOLUTE.write(value.kind == "learned", context),
            **_PER_LAYER.write(relative and value.per_layer, context),
            **_SHARED.write(relative and not value.per_layer, context),
        }


_POOLING = f.Derived(
    lambda config: (
        {"pooling": "patches", "norm": read(NORM, config)}
        if MEAN_POOLING.read(config)
        else {"pooling": "first"}
    )
)
_SCALE = f.Float("layer_scale_init_value", default=0.1)
_DROPOUT = f.Float("hidden_dropout_prob", default=0.0)
_BODY = {
    "architecture": "encoder",
    "*": f.Stated(drop_path_rate=0.0, use_mask_token=False),
    "d_model": f.Int("hidden_size", default=768),
    "position": _BeitPosition(),
    "embedding": patches(224, 16, dropout=_DROPOUT),
    "encoder": Layers(
        f.Depth("num_hidden_layers", default=12),
        {
            "kind": "pre_norm",
            "norm": NORM,
            "attention": multi_head(
                12,
                dropout=f.Float("attention_probs_dropout_prob", default=0.0),
                bias={"query": True, "key": False, "value": True, "output": True},
            ),
            "feed_forward": mlp(3072, "gelu"),
            "layer_scale": f.Mapped(_SCALE, lambda scale: scale or None, lambda scale: scale or 0.0),
            "dropout": _DROPOUT,
        },
        final_norm=NORM_UNLESS_MEAN,
    ),
    "initialization": f.normal(),
}
_LAYER = {
    "layernorm_before": "attention_norm",
    **projections("attention.attention.", "query key value"),
    "attention.output.dense": "attention.output",
    "layernorm_after": "feed_forward_norm",
    "intermediate.dense": "feed_forward.up",
    "output.dense": "feed_forward.down",
}
_STORED, _OURS = "encoder.layer.{layer}.", "encoder.blocks.{layer}."
_TABLE = "relative_position_bias.relative_position_bias_table"
_POOLER = modules({"pooler.layernorm": "head.norm"})
_TENSORS = Tensors(
    "beit",
    (
        Rule("embeddings.cls_token", ("embedding.class_token.weight",), Unsqueezed()),
        Rule("embeddings.position_embeddings", ("embedding.position.table.weight",), Unsqueezed()),
        *modules(
            {
                "embeddings.patch_embeddings.projection": "embedding.patch",
                "layernorm": "encoder.final_norm",
            }
        ),
        *also_named(
            (
                same(f"encoder.{_TABLE}", "encoder.position.table.weight"),
                same(f"{_STORED}attention.attention.{_TABLE}", f"{_OURS}attention.position.table.weight"),
                same(f"{_STORED}lambda_1", f"{_OURS}attention_scale.weight"),
                same(f"{_STORED}lambda_2", f"{_OURS}feed_forward_scale.weight"),
                *modules(_LAYER, _STORED, _OURS),
            ),
            *LAYERS_OF_IMAGES,
            (r"attention\.attention\.relative", "relative"),
            (r"^encoder\.relative_position_bias\.", "shared_position_bias."),
        ),
    ),
    prefix="beit.",
    outside=("classifier.",),
    heads={"pooled": _POOLER, "classification": (*_POOLER, *affine("classifier", "head.labels"))},
    optional=("pooler.*", "classifier.*", "embeddings.mask_token", "*relative_position_index"),
)

_UNREAD = (
    *("drop_path_rate", "use_mask_token", "vocab_size"),  # of training
    *("add_fpn", "reshape_hidden_states", "out_features", "out_indices", "stage_names"),
    *("pool_scales", "use_auxiliary_head", "auxiliary_loss_weight", "auxiliary_channels"),
    *("auxiliary_num_convs", "auxiliary_concat_input", "semantic_loss_ignore_index"),
    "segmentation_indices",
)


def _family(model_type: str, prefix: str, tensors: Tensors, alone: HeadClass) -> Family:
    return Family(
        model_type,
        tensors,
        _BODY,
        {
            f"{prefix}ForImageClassification": HeadClass(
                "classification", {"labels": Labels(), "*": _POOLING}
            ),
            f"{prefix}Model": alone,
        },
        ignored=_UNREAD,
    )


FAMILIES = (
    _family("beit", "Beit", _TENSORS, HeadClass("pooled", {"*": _POOLING})),
    _family(
        "data2vec-vision",
        "Data2VecVision",
        replace(_TENSORS, name="data2vec-vision", prefix="data2vec_vision."),
        BODY,
    ),
)
