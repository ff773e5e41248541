"""PaliGemma (Beyer et al., 2024) and PaliGemma 2 (Steiner et al., 2024): ``PaliGemmaForConditionalGeneration``, the projected
vectors of a SigLIP without its head among the tokens of Gemma or Gemma 2.

The tokens of a prompt, text and images, see each other in both directions, as in the reference where its processor says which
they are.
"""

from __future__ import annotations

from dataclasses import replace

from specs.kinds.connector import LinearConnector
from specs.model.model import Model
from zoo.families.common import fields as f
from zoo.families.common.config import Config
from zoo.families.common.family import Family, HeadClass
from zoo.families.common.template import Data, read
from zoo.families.common.tensors import affine
from zoo.families.common.vision_language import (
    TEXT_CONFIG,
    TIED,
    VISION_CONFIG,
    connector_of,
    decoder_alone,
    decoder_rules,
    image_rules,
    images_of,
    joined,
    patches_of,
    reader_config,
    reader_tensors,
)
from zoo.families.decoders.gemma import FAMILIES as TEXT_FAMILIES
from zoo.families.vision.siglip import VISION as SIGLIP

_TEXTS = {
    family.model_type: (family, class_name)
    for family, class_name in zip(TEXT_FAMILIES, ("GemmaForCausalLM", "Gemma2ForCausalLM"), strict=True)
}
_IMAGE_CLASS, _USE_HEAD, _WIDTH = "SiglipVisionModel", "vision_use_head", "projection_dim"
_BOTH_WAYS, _COUNT = "use_bidirectional_attention", "num_image_tokens"
_CONNECTOR = {"token": f.Int("image_token_index", "image_token_id", default=256000)}


class _PaliGemma(Family):
    """A SigLIP and a Gemma or Gemma 2."""

    def spec(self, config: Config, class_name: str) -> Data:
        unread = ("vocab_size", "projector_hidden_act", "num_positions", _USE_HEAD, _COUNT, _WIDTH)
        seen = config.model(VISION_CONFIG, (SIGLIP.model_type,), unread)
        images = SIGLIP.body_spec(seen, _IMAGE_CLASS)
        text = config.model(TEXT_CONFIG, _TEXTS, (TIED, _BOTH_WAYS, _COUNT))
        family, text_class = _TEXTS[text.data["model_type"]]
        decoder = family.spec(text, text_class)
        decoder["decoder"]["bidirectional"] = "prompt"
        config.must(_WIDTH, decoder["d_model"], "images among tokens are as wide as these")
        config.ignore("hidden_size", "ignore_index", "vocab_size")  # of the text, and of training
        connector = {"kind": "linear", **read(_CONNECTOR, config)}
        return joined(decoder, images, connector, tied=config.bool(TIED, default=True))

    def config(self, model: Model, class_name: str) -> Data:
        seen = images_of(model)
        connector_of(model, LinearConnector)
        patches_of(seen)
        family, text_class = _TEXTS["gemma2" if _is_second(model) else "gemma"]
        return reader_config(
            self,
            class_name,
            model,
            images={**SIGLIP.body_config(seen, _IMAGE_CLASS), _USE_HEAD: False},
            text=family.config(decoder_alone(model), text_class),
            connector=_CONNECTOR,
            projection_dim=model.output_width,
            hidden_size=model.output_width,
        )


def _is_second(model: Model) -> bool:
    """Whether the decoder is a Gemma 2, which has a norm after each branch too."""
    return model.last_stack.block.kind == "sandwich"


def _is_first(model: Model) -> bool:
    return not _is_second(model)


_DECODER = tuple(
    replace(rule, where=where)
    for family, where in zip(TEXT_FAMILIES, (_is_first, _is_second), strict=True)
    for rule in decoder_rules("language_model.model.", family.tensors.rules)
)

FAMILIES = (
    _PaliGemma(
        "paligemma",
        reader_tensors(
            "paligemma",
            *image_rules(SIGLIP.tensors.rules, "vision_tower.", also="vision_tower.vision_model."),
            *affine("multi_modal_projector.linear", "connector.projection"),
            *_DECODER,
            unused=("*.embeddings.position_ids", "*vision_tower.*head.*"),
        ),
        classes={"PaliGemmaForConditionalGeneration": HeadClass("language_modeling")},
    ),
)
