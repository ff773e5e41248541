"""CLIP (Radford et al., 2021), and its encoders alone: ``CLIPConfig``, ``CLIPTextConfig``, ``CLIPVisionConfig``.

The text encoder is also that of Stable Diffusion.
"""

from __future__ import annotations

from typing import Any

from specs.kinds.pooling import AtToken
from zoo.families.common import fields as f
from zoo.families.common.blocks import multi_head
from zoo.families.common.config import Config
from zoo.families.common.decoders import layer_norm
from zoo.families.common.dual import DualEncoderFamily, Tower, rules_of_tower
from zoo.families.common.family import Family, HeadClass
from zoo.families.common.images import patches
from zoo.families.common.layers import Layers
from zoo.families.common.template import Data, Field, FieldContext, Template, UnfitError
from zoo.families.common.tensors import Rule, Tensors, modules, projections, same
from zoo.families.common.transforms import Squeezed


def _layers(norm: Template, heads: Field, hidden: Field, activation: Field, **more: Template) -> Layers:
    return Layers(
        f.Depth("num_hidden_layers", default=12),
        {
            "kind": "pre_norm",
            "norm": norm,
            "attention": multi_head(heads, dropout=f.Float("attention_dropout", default=0.0)),
            "feed_forward": {"kind": "mlp", "hidden": hidden, "activation": activation},
        },
        **more,
    )


def text_body(*, vocab_size: int, rows: int, width: Field, **layer: Any) -> Data:
    """The body of an encoder of texts."""
    return {
        "architecture": "encoder",
        "*": f.Stated(bos_token_id=None),  # whose default may be beyond the vocabulary
        "vocab_size": f.Int("vocab_size", default=vocab_size),
        "d_model": width,
        "context_length": f.Rows("max_position_embeddings", default=rows),
        "position": {"kind": "learned"},
        "encoder": _layers(**layer),
        "initialization": f.normal(),
    }


def vision_body(*, patch_size: int, embedding: Data, width: Field, **layer: Any) -> Data:
    """The body of an encoder of images."""
    return {
        "architecture": "encoder",
        "d_model": width,
        "position": {"kind": "learned"},
        "embedding": {**patches(224, patch_size), **embedding},
        "encoder": _layers(**layer),
        "initialization": f.normal(),
    }


_NORM, _ACTIVATION = layer_norm("layer_norm_eps"), f.Activation("hidden_act", "quick_gelu")
TEXT_FIELDS: dict[str, Any] = {
    "vocab_size": 49408,
    "width": f.Int("hidden_size", default=512),
    "causal": True,
    "norm": _NORM,
    "heads": f.Int("num_attention_heads", default=8),
    "hidden": f.Int("intermediate_size", default=2048),
    "activation": _ACTIVATION,
}
"""The text encoder, without its number of positions."""
_TEXT_BODY = text_body(rows=77, **TEXT_FIELDS)
VISION_BODY = vision_body(
    patch_size=32,
    embedding={"bias": False, "norm": _NORM},
    width=f.Int("hidden_size", default=768),
    final_norm=False,
    norm=_NORM,
    heads=f.Int("num_attention_heads", default=12),
    hidden=f.Int("intermediate_size", default=3072),
    activation=_ACTIVATION,
)


class End(Field):
    """The token at which a text is pooled.

    Configs from before 2023 set eos_token_id to 2, for which the reference takes the highest id in the text: that of the
    tokenizer's end of text, unless tokens were added after it.
    """

    old: int | None = 2

    def read(self, config: Config) -> Data:
        end: int = config.int("eos_token_id", default=49407)
        if end == self.old:
            return {"token": "highest"}
        vocab_size: int = _TEXT_BODY["vocab_size"].read(config)
        if not 0 <= end < vocab_size:
            config.refuse("eos_token_id", f"must be below vocab_size, which is {vocab_size}: texts end there")
        return {"token": end}

    def write(self, value: Any, context: FieldContext) -> Data:
        if not isinstance(value, AtToken):
            raise UnfitError(f"head.pooling {value}")
        return {"eos_token_id": 2 if value.token == "highest" else value.token}


TEXT_LAYER = {
    "layer_norm1": "attention_norm",
    **projections("self_attn."),
    "layer_norm2": "feed_forward_norm",
    "mlp.fc1": "feed_forward.up",
    "mlp.fc2": "feed_forward.down",
}
"""The names of a layer, in both encoders."""

_LAYERS = modules(TEXT_LAYER, "encoder.layers.{layer}.", "encoder.blocks.{layer}.")
_POSITIONS = same("embeddings.position_embedding.weight", "embedding.position.table.weight")
_TEXT_TENSORS = Tensors(
    "clip_text_model",
    (
        *modules({"embeddings.token_embedding": "embedding.token", "final_layer_norm": "encoder.final_norm"}),
        _POSITIONS,
        *_LAYERS,
    ),
    prefix="text_model.",
    outside=("text_projection.",),
    bare_heads=(),
    heads={"pooled": (same("text_projection.weight", "head.projection.weight"),)},
    optional=("text_projection.weight", "vision_model.*", "visual_projection.weight", "logit_scale"),
    unused=("embeddings.position_ids",),
)
_VISION_TENSORS = Tensors(
    "clip_vision_model",
    (
        Rule("embeddings.class_embedding", ("embedding.class_token.weight",), Squeezed()),
        same("embeddings.patch_embedding.weight", "embedding.patch.weight"),
        _POSITIONS,
        *modules({"pre_layrnorm": "embedding.norm", "post_layernorm": "head.norm"}),
        *_LAYERS,
    ),
    prefix="vision_model.",
    outside=("visual_projection.",),
    bare_heads=(),
    heads={"pooled": (same("visual_projection.weight", "head.projection.weight"),)},
    optional=("visual_projection.weight", "text_model.*", "text_projection.weight", "logit_scale"),
    unused=("embeddings.position_ids",),
)


_PROJECTED = {"projection": f.Int("projection_dim", default=512)}
_IGNORED = ("projection_dim", "initializer_factor")
_TEXT_HEAD, _VISION_HEAD = {"pooling": End()}, {"pooling": "first", "norm": _NORM}
_VECTORS = {"normalize": True}
TEXT = Family(
    "clip_text_model",
    _TEXT_TENSORS,
    _TEXT_BODY,
    {
        "CLIPTextModel": HeadClass("pooled", _TEXT_HEAD),
        "CLIPTextModelWithProjection": HeadClass(
            "pooled", {**_TEXT_HEAD, **_PROJECTED, "output": "text_embeds"}
        ),
    },
    ignored=("dropout", *_IGNORED),
)
VISION = Family(
    "clip_vision_model",
    _VISION_TENSORS,
    VISION_BODY,
    {
        "CLIPVisionModel": HeadClass("pooled", _VISION_HEAD),
        "CLIPVisionModelWithProjection": HeadClass(
            "pooled", {**_VISION_HEAD, **_PROJECTED, "output": "image_embeds"}
        ),
    },
    ignored=("dropout", *_IGNORED),
)
CLIP = DualEncoderFamily(
    "clip",
    Tensors(
        "clip",
        (
            *rules_of_tower("text", _TEXT_TENSORS.rules, "text_model."),
            *rules_of_tower("text", _TEXT_TENSORS.heads["pooled"]),
            *rules_of_tower("image", _VISION_TENSORS.rules, "vision_model."),
            *rules_of_tower("image", _VISION_TENSORS.heads["pooled"]),
            Rule("logit_scale", ("head.scale",), Squeezed()),
        ),
        unused=("*.embeddings.position_ids",),
    ),
    classes={
        "CLIPModel": HeadClass(
            "contrastive", {"log_scale": f.Float("logit_scale_init_value", default=2.6592)}
        )
    },
    ignored=("initializer_factor",),
    towers={
        "text": Tower(TEXT, "CLIPTextModel", {**_TEXT_HEAD, **_VECTORS, "output": "text_embeds"}),
        "image": Tower(VISION, "CLIPVisionModel", {**_VISION_HEAD, **_VECTORS, "output": "image_embeds"}),
    },
    shared=_PROJECTED,
    second=True,
)
FAMILIES = (TEXT, VISION, CLIP)
