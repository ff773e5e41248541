"""Chinese CLIP (Yang et al., 2022): ``ChineseCLIPConfig``, ``ChineseCLIPModel``: CLIP's encoder of images, and a BERT whose first
token's vector is projected."""

from __future__ import annotations

from dataclasses import replace

from zoo.families.common.dual import Tower, rules_of_tower
from zoo.families.common.tensors import Tensors
from zoo.families.encoders.bert import FAMILIES as BERT
from zoo.families.vision.clip import CLIP

_TEXT = replace(
    BERT[0],
    model_type="chinese_clip_text_model",
    ignored=(*BERT[0].ignored, "initializer_factor", "projection_dim"),
)
_IMAGES = CLIP.towers["image"]
_IMAGE = Tower(
    replace(_IMAGES.family, model_type="chinese_clip_vision_model"), _IMAGES.class_name, _IMAGES.head
)
_TEXT_HEAD = {"pooling": "first", "normalize": True, "output": "text_embeds"}

FAMILIES = (
    replace(
        CLIP,
        model_type="chinese_clip",
        tensors=Tensors(
            "chinese_clip",
            (
                *rules_of_tower("text", BERT[0].tensors.rules, "text_model."),
                *(rule for rule in CLIP.tensors.rules if not rule.stored.startswith("text_model.")),
            ),
            unused=("*.embeddings.position_ids", "text_model.pooler.*"),
        ),
        classes={"ChineseCLIPModel": CLIP.classes["CLIPModel"]},
        towers={"text": Tower(_TEXT, "BertModel", _TEXT_HEAD), "image": _IMAGE},
        second=False,
    ),
)
