"""ModernVBERT (Teiletche et al., 2025): ``ModernVBertModel``, the images of a SigLIP without its head among the tokens of a
ModernBERT, with pixel shuffle between.

All tokens see each other, within windows on both sides in most layers: a window of a decoder counts the token and one side.
"""

from __future__ import annotations

from typing import Any

from specs.kinds.connector import LinearConnector
from specs.kinds.head import NoHead
from specs.model.model import Model
from specs.model.stack import Stack
from zoo.families.common import fields as f
from zoo.families.common.config import Config
from zoo.families.common.decoders import query_key_value
from zoo.families.common.family import Family, HeadClass
from zoo.families.common.modernbert import modernbert_tensors
from zoo.families.common.parts import alone
from zoo.families.common.template import Data, FieldContext, read, write
from zoo.families.common.tensors import Tensors, fused, same
from zoo.families.common.vision_language import (
    TEXT_CONFIG,
    TIED,
    VISION_CONFIG,
    connector_of,
    decoder_rules,
    image_rules,
    images_of,
    joined,
    patches_of,
)
from zoo.families.encoders.modernbert import FAMILIES as TEXT_FAMILIES
from zoo.families.vision.siglip import VISION as SIGLIP

_TEXT, _TEXT_CLASS, _IMAGE_CLASS = TEXT_FAMILIES[0], "ModernBertModel", "SiglipVisionModel"
_USE_HEAD = "vision_use_head"
_CONNECTOR = {
    "token": f.Int("image_token_id", default=50407),
    "shuffle": f.Int("pixel_shuffle_factor", default=4),
}
_OF_OTHER_CLASSES = (
    *(f"classifier_{name}" for name in ("bias", "dropout", "pooling")),
    "initializer_cutoff_factor",
    "vocab_size",
    TIED,
)


class _ModernVBert(Family):
    """A SigLIP and a ModernBERT."""

    def body_spec(self, config: Config, class_name: str) -> Data:
        seen = config.model(VISION_CONFIG, (SIGLIP.model_type,), (_USE_HEAD,))
        images = SIGLIP.body_spec(seen, _IMAGE_CLASS)
        text = config.model(TEXT_CONFIG, (_TEXT.model_type,), (TIED,))
        words = _one_sided(_TEXT.body_spec(text, _TEXT_CLASS))
        stack = {**words.pop("encoder"), "bidirectional": "windows"}
        config.ignore(*_OF_OTHER_CLASSES)
        connector = {"kind": "linear", "bias": False, **read(_CONNECTOR, config)}
        data = joined({**words, "decoder": stack, "head": {}}, images, connector, tied=False)
        del data["head"]
        return data

    def body_config(self, model: Model, class_name: str) -> Data:
        seen = images_of(model)
        connector = connector_of(model, LinearConnector)
        patches_of(seen)
        assert model.decoder is not None
        without: dict[str, Any] = dict.fromkeys(("image", "connector", "decoder"))
        words = alone(model, "encoder", _both_sided(model.decoder), {**without, "head": NoHead()})
        return {
            "architectures": [class_name],
            "model_type": self.model_type,
            VISION_CONFIG: {**SIGLIP.body_config(seen, _IMAGE_CLASS), _USE_HEAD: False},
            TEXT_CONFIG: _TEXT.body_config(words, _TEXT_CLASS),
            **write(_CONNECTOR, connector, FieldContext.of(model, "connector")),
        }


def _one_sided(data: Any) -> Any:
    """The spec of an encoder with windows that count the token and one side."""
    if not isinstance(data, dict):
        return data
    return {
        key: value // 2 + 1 if key == "window" and value else _one_sided(value) for key, value in data.items()
    }


def _both_sided(stack: Stack) -> Stack:
    """The stack of an encoder, whose windows count both sides."""

    def widened(block: Any) -> Any:
        window = getattr(block.attention, "window", None)
        if window is None:
            return block
        attention = block.attention.model_copy(update={"window": 2 * (window - 1)})
        return block.model_copy(update={"attention": attention})

    blocks = {name: widened(block) for name, block in stack.blocks.items()}
    return stack.model_copy(update={"block": widened(stack.block), "blocks": blocks, "bidirectional": None})


_BLOCK = "decoder.blocks.{layer}"
_WORDS = modernbert_tensors(
    "modernvbert", "decoder", fused("layers.{layer}.attn.Wqkv", query_key_value(_BLOCK)), {}
)

FAMILIES = (
    _ModernVBert(
        "modernvbert",
        Tensors(
            "modernvbert",
            (
                *image_rules(SIGLIP.tensors.rules, "vision_model.", also="vision_model.vision_model."),
                same("connector.modality_projection.weight", "connector.projection.weight"),
                *decoder_rules("text_model.", _WORDS.rules),
            ),
            prefix="model.",
            outside=("lm_head.", "projection_head."),
            optional=("lm_head.*", "projection_head.*", "classifier.*"),
            unused=("*.embeddings.position_ids", "*vision_model.*head.*", "*rotary_emb.*"),
        ),
        classes={"ModernVBertModel": HeadClass("none")},
    ),
)
