"""SigLIP (Zhai et al., 2023) and SigLIP 2 at fixed resolutions: ``SiglipConfig``, ``SiglipModel`` and its classifier of images, and
its encoder of images alone."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from specs.model.model import Model
from zoo.families.common import fields as f
from zoo.families.common.config import Config
from zoo.families.common.decoders import layer_norm
from zoo.families.common.dual import DualEncoderFamily, Tower, rules_of_tower
from zoo.families.common.family import Family, HeadClass
from zoo.families.common.heads import Labels
from zoo.families.common.template import Data, FieldContext, read, write
from zoo.families.common.tensors import Rule, Tensors, affine, modules, same
from zoo.families.common.transforms import STACKED, Unsqueezed
from zoo.families.vision.clip import TEXT_LAYER, text_body, vision_body

_NORM = layer_norm("layer_norm_eps", default=1e-6)
_HIDDEN, _ACTIVATION = (
    f.Int("intermediate_size", default=3072),
    f.Activation("hidden_act", "gelu_pytorch_tanh"),
)
_HEADS, _WIDTH = f.Int("num_attention_heads", default=12), f.Int("hidden_size", default=768)
_SAME: dict[str, Any] = {
    "norm": _NORM,
    "heads": _HEADS,
    "hidden": _HIDDEN,
    "activation": _ACTIVATION,
    "width": _WIDTH,
}

_TEXT = Family(
    "siglip_text_model",
    Tensors(
        "siglip",
        (
            *modules(
                {"embeddings.token_embedding": "embedding.token", "final_layer_norm": "encoder.final_norm"}
            ),
            same("embeddings.position_embedding.weight", "embedding.position.table.weight"),
            *modules(TEXT_LAYER, "encoder.layers.{layer}.", "encoder.blocks.{layer}."),
            *affine("head", "head.dense"),
        ),
    ),
    text_body(vocab_size=32000, rows=64, **_SAME),
    {"SiglipTextModel": HeadClass("pooled")},
    fixed={"projection_size": (_WIDTH, "texts keep their width")},
)
VISION = Family(
    "siglip_vision_model",
    Tensors(
        "siglip_vision",
        (
            *modules(
                {"embeddings.patch_embedding": "embedding.patch", "post_layernorm": "encoder.final_norm"}
            ),
            same("embeddings.position_embedding.weight", "embedding.position.table.weight"),
            *modules(TEXT_LAYER, "encoder.layers.{layer}.", "encoder.blocks.{layer}."),
            Rule("head.probe", ("head.pooling.query.weight",), Unsqueezed()),
            Rule(
                "head.attention.in_proj_weight",
                tuple(f"head.pooling.attention.{part}.weight" for part in ("query", "key", "value")),
                STACKED,
            ),
            Rule(
                "head.attention.in_proj_bias",
                tuple(f"head.pooling.attention.{part}.bias" for part in ("query", "key", "value")),
                STACKED,
            ),
            *modules(
                {
                    "attention.out_proj": "attention.output",
                    "layernorm": "norm",
                    "mlp.fc1": "feed_forward.up",
                    "mlp.fc2": "feed_forward.down",
                },
                "head.",
                "head.pooling.",
            ),
        ),
    ),
    vision_body(patch_size=16, embedding={"class_token": False}, **_SAME),
    {"SiglipVisionModel": HeadClass("pooled")},
    fixed={"vision_use_head": (True, "images need a vector")},
)
_POOLING = {
    "attention": {"kind": "multi_head", "heads": _HEADS},
    "norm": _NORM,
    "feed_forward": {"kind": "mlp", "hidden": _HIDDEN, "activation": _ACTIVATION},
}
_CLASSIFIER, _IN_WHOLE = "SiglipForImageClassification", "vision_model."


class _Siglip(DualEncoderFamily):
    """Two encoders, or the encoder of images with a classifier; the config holds both encoders in either case."""

    def spec(self, config: Config, class_name: str) -> Data:
        if class_name != _CLASSIFIER:
            return super().spec(config, class_name)
        config.ignore("text_config", *self.ignored)
        images = config.inner("vision_config")
        images.ignore("vision_use_head")
        body = _IMAGES.body_spec(images, "SiglipVisionModel")
        return {**body, "head": {"kind": "classification", **read(self.classes[class_name].head, config)}}

    def config(self, model: Model, class_name: str) -> Data:
        if class_name != _CLASSIFIER:
            return super().config(model, class_name)
        images = _IMAGES.body_config(model, "SiglipVisionModel")
        del images["architectures"]
        head = write(self.classes[class_name].head, model.head, FieldContext.of(model, "head"))
        classes = {"architectures": [class_name], "model_type": self.model_type}
        return {**classes, "vision_config": {**images, "vision_use_head": False}, **head}


_IMAGES = replace(
    VISION,
    tensors=replace(
        VISION.tensors, prefix=_IN_WHOLE, bare_heads=(), optional=("text_model.*", "logit_*", "head.*")
    ),
    classes={
        "SiglipVisionModel": HeadClass(
            "pooled",
            {
                "*": f.Kinds(
                    f.Bool("vision_use_head", default=True),
                    {True: {"kind": "pooled", "pooling": _POOLING}, False: {"kind": "none"}},
                )
            },
            also="none",
        )
    },
    fixed={},
)

FAMILIES = (
    _IMAGES,
    _Siglip(
        "siglip",
        Tensors(
            "siglip",
            (
                *rules_of_tower("text", _TEXT.tensors.rules, "text_model."),
                *rules_of_tower("image", VISION.tensors.rules, "vision_model."),
                same("logit_scale", "head.scale"),
                same("logit_bias", "head.bias"),
            ),
            heads={
                "classification": (
                    *(replace(rule, stored=_IN_WHOLE + rule.stored) for rule in VISION.tensors.rules),
                    *affine("classifier", "head.labels"),
                )
            },
            optional=("vision_model.head.*", "text_model.*", "logit_*", "classifier.*"),
            unused=("*.embeddings.position_ids",),
        ),
        classes={
            "SiglipModel": HeadClass("contrastive", {"log_scale": 2.3025851, "bias": -10.0}),
            _CLASSIFIER: HeadClass("classification", {"labels": Labels(), "pooling": "mean"}),
        },
        ignored=("initializer_factor",),
        towers={
            "text": Tower(
                _TEXT,
                "SiglipTextModel",
                {"pooling": "last", "activation": "identity", "normalize": True, "output": "text_embeds"},
            ),
            "image": Tower(
                VISION,
                "SiglipVisionModel",
                {"pooling": _POOLING, "normalize": True, "output": "image_embeds"},
            ),
        },
    ),
)
