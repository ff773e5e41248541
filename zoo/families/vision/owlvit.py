"""OWL-ViT (Minderer et al., 2022): CLIP's encoders, with a box and a vector for each patch in place of one vector per image."""

from __future__ import annotations

from zoo.families.common import fields as f
from zoo.families.common.decoders import layer_norm
from zoo.families.common.dual import DualEncoderFamily, Tower, rules_of_tower
from zoo.families.common.family import Family, HeadClass
from zoo.families.common.tensors import Rule, Tensors, affine, modules, same
from zoo.families.common.transforms import Squeezed
from zoo.families.vision.clip import TEXT as CLIP_TEXT
from zoo.families.vision.clip import TEXT_FIELDS, TEXT_LAYER, VISION_BODY, text_body

_NORM = layer_norm("layer_norm_eps")


_TEXT = Family(
    "owlvit_text_model",
    Tensors("owlvit", CLIP_TEXT.tensors.rules),
    text_body(rows=16, **TEXT_FIELDS),
    {"OwlViTTextModel": HeadClass("pooled")},
    ignored=("dropout", "eos_token_id", "initializer_factor", "projection_dim"),
)
_VISION = Family(
    "owlvit_vision_model",
    Tensors(
        "owlvit",
        (
            Rule("embeddings.class_embedding", ("embedding.class_token.weight",), Squeezed()),
            same("embeddings.patch_embedding.weight", "embedding.patch.weight"),
            same("embeddings.position_embedding.weight", "embedding.position.table.weight"),
            *affine("pre_layernorm", "embedding.norm"),
            *affine("post_layernorm", "head.norm"),
            *modules(TEXT_LAYER, "encoder.layers.{layer}.", "encoder.blocks.{layer}."),
        ),
    ),
    VISION_BODY,
    {"OwlViTVisionModel": HeadClass("patch_boxes")},
    ignored=("dropout", "initializer_factor", "projection_dim"),
)
_HEADS = {
    "class_head.dense0": "image_head.projection",
    "class_head.logit_shift": "image_head.shift",
    "class_head.logit_scale": "image_head.scale",
    "box_head.dense0": "image_head.first",
    "box_head.dense1": "image_head.second",
    "box_head.dense2": "image_head.box",
    "layer_norm": "image_head.patch_norm",
}

FAMILIES = (
    DualEncoderFamily(
        "owlvit",
        Tensors(
            "owlvit",
            (
                *rules_of_tower("text", _TEXT.tensors.rules, "text_model."),
                same("text_projection.weight", "text_head.projection.weight"),
                *rules_of_tower("image", _VISION.tensors.rules, "vision_model."),
                *modules(_HEADS),
            ),
            prefix="owlvit.",
            outside=("class_head.", "box_head.", "layer_norm."),
            unused=("*.embeddings.position_ids", "visual_projection.weight", "logit_scale", "box_bias"),
        ),
        classes={"OwlViTForObjectDetection": HeadClass("detection", {"kind": "detection"})},
        fixed={
            "text_config_dict": (None, "it is an old second copy of text_config"),
            "vision_config_dict": (None, "it is an old second copy of vision_config"),
        },
        ignored=("initializer_factor", "logit_scale_init_value"),
        towers={
            "text": Tower(
                _TEXT,
                "OwlViTTextModel",
                {"pooling": {"token": "highest"}, "normalize": True, "output": "text_embeds"},
            ),
            "image": Tower(_VISION, "OwlViTVisionModel", {"kind": "patch_boxes", "norm": _NORM}),
        },
        shared={"projection": f.Int("projection_dim", default=512)},
    ),
)
