"""Gemma 3 with images (Gemma team, 2025): ``Gemma3ForConditionalGeneration``, the averaged vectors of a SigLIP without its head
among the tokens of Gemma 3.

The vectors of an image see each other in both directions, as in the reference where its processor says which tokens they are.
"""

from __future__ import annotations

import math

from specs.kinds.connector import LinearConnector
from specs.kinds.norm import RMSNorm
from specs.model.model import Model
from zoo.families.common import fields as f
from zoo.families.common.config import Config
from zoo.families.common.family import Family, HeadClass
from zoo.families.common.template import Data, UnfitError, read
from zoo.families.common.tensors import Rule, same
from zoo.families.common.transforms import Transposed
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
from zoo.families.decoders.gemma import CAP
from zoo.families.decoders.gemma3 import FAMILIES as TEXT_FAMILIES
from zoo.families.vision.siglip import VISION as SIGLIP

_TEXT, _TEXT_CLASS, _IMAGE_CLASS = TEXT_FAMILIES[0], "Gemma3ForCausalLM", "SiglipVisionModel"
_USE_HEAD, _VECTORS = "vision_use_head", "mm_tokens_per_image"
_CONNECTOR = {"token": f.Int("image_token_index", "image_token_id", default=262144)}
_MARKS = tuple(f"{mark}_token_{name}" for mark in ("boi", "eoi") for name in ("index", "id"))
"""Fields of the tokens around an image, which the processor writes."""


class _Gemma3(Family):
    """A SigLIP, a Gemma 3, and the number of vectors per image."""

    def spec(self, config: Config, class_name: str) -> Data:
        seen = config.model(VISION_CONFIG, (SIGLIP.model_type,), ("vocab_size", _USE_HEAD))
        images = SIGLIP.body_spec(seen, _IMAGE_CLASS)
        text = config.model(TEXT_CONFIG, (_TEXT.model_type,), (TIED,))
        decoder = _TEXT.spec(text, _TEXT_CLASS)
        if decoder["head"].get("softcap") is not None:
            text.refuse(CAP, "must be null: the reference does not cap the scores of this class")
        text.must(
            "use_bidirectional_attention", False, "only the vectors of an image see each other both ways"
        )
        decoder["decoder"]["bidirectional"] = "image"
        eps = images["encoder"]["block"]["norm"]["eps"]
        connector = {
            "kind": "linear",
            "bias": False,
            "norm": {"kind": "rms_norm", "eps": eps, "unit_offset": True},
            "pool": self._pool(
                config, images["embedding"]["image_size"] // images["embedding"]["patch_size"]
            ),
            **read(_CONNECTOR, config),
        }
        config.ignore(*_MARKS)
        return joined(decoder, images, connector, tied=config.bool(TIED, default=True))

    def _pool(self, config: Config, side: int) -> int:
        """The side of the squares of patches that are averaged."""
        squares = math.isqrt(max(0, config.int(_VECTORS, default=256)))
        if squares**2 != config.int(_VECTORS, default=256) or not squares or side % squares:
            config.refuse(
                _VECTORS, f"must be the square of a divisor of the patches in a row, which are {side}"
            )
        return side // squares

    def config(self, model: Model, class_name: str) -> Data:
        seen, connector = images_of(model), connector_of(model, LinearConnector)
        patches = patches_of(seen)
        norm, of_images = connector.norm, seen.last_stack.layer_blocks()[-1].norm
        if not isinstance(norm, RMSNorm) or norm.eps != getattr(of_images, "eps", None):
            raise UnfitError("connector without an rms_norm of the same eps as the norms of the images")
        return reader_config(
            self,
            class_name,
            model,
            images={**SIGLIP.body_config(seen, _IMAGE_CLASS), _USE_HEAD: False},
            text=_TEXT.config(decoder_alone(model), _TEXT_CLASS),
            connector=_CONNECTOR,
            mm_tokens_per_image=(patches.side // connector.pool) ** 2,
        )


FAMILIES = (
    _Gemma3(
        "gemma3",
        reader_tensors(
            "gemma3",
            *image_rules(SIGLIP.tensors.rules, "vision_tower.", also="vision_tower.vision_model."),
            same("multi_modal_projector.mm_soft_emb_norm.weight", "connector.norm.weight"),
            Rule(
                "multi_modal_projector.mm_input_projection_weight",
                ("connector.projection.weight",),
                Transposed(),
            ),
            *decoder_rules("language_model.model.", _TEXT.tensors.rules),
            unused=("*.embeddings.position_ids", "*vision_tower.*head.*"),
        ),
        classes={"Gemma3ForConditionalGeneration": HeadClass("language_modeling")},
    ),
)
