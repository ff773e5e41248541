"""Idefics 3 (Laurençon et al., 2024) and SmolVLM (Marafioti et al., 2025): the images of a SigLIP without its head among the
tokens of Llama, with pixel shuffle between."""

from __future__ import annotations

from specs.kinds.connector import LinearConnector
from specs.model.model import Model
from zoo.families.common import fields as f
from zoo.families.common.config import Config
from zoo.families.common.decoders import layer_norm
from zoo.families.common.family import Family, HeadClass
from zoo.families.common.template import Data, UnfitError, read
from zoo.families.common.tensors import Tensors, same
from zoo.families.common.vision_language import (
    TIED,
    VISION_CONFIG,
    connector_of,
    decoder_rules,
    image_rules,
    images_of,
    joined,
    patches_of,
    reader_config,
)
from zoo.families.vision.clip import vision_body
from zoo.families.vision.siglip import VISION as SIGLIP
from zoo.families.vision_language.text_configs import decoder_config, decoder_spec

_LARGEST = 75
_ROUNDED = frozenset(
    [19, 25, 29, 31, 38, 40, 41, 43, 47, 49, 50, 54, 55, 58, 59, 61, 62, 67, 68, 71, 72, 73, 74]
)
"""The numbers of patches in a row, up to the ``_LARGEST``, at which the reference gives several patches one position: it takes
the position of a patch from its place as a fraction of the row, in single precision."""


def fault_of_side(side: int) -> str | None:
    """The reason why the reference does not tell all positions of a grid apart; None where it does."""
    if side <= _LARGEST and side not in _ROUNDED:
        return None
    return f"makes {side} patches in a row, some of which the reference gives one position by rounding"


_TEXT_OF_TRAINING = (
    "_flash_attn_2_enabled", "neftune_noise_alpha", "perceiver_config", "pixel_shuffle_factor", "qk_layer_norms",
    "transformers.js_config", "use_resampler",
)  # fmt: skip
"""Fields in the decoder's config of published checkpoints that the reference does not have."""

_VISION_CLASS = "Idefics3VisionTransformer"
_CONNECTOR = {
    "token": f.Int("image_token_id", default=128257),
    "shuffle": f.Int("scale_factor", default=2),
}


def images_of_siglip(
    model_type: str, class_name: str, *, width: int, heads: int, ignored: tuple[str, ...] = ()
) -> Family:
    """The encoder of images, a SigLIP without its head, with its usual width and number of heads."""
    return Family(
        model_type,
        SIGLIP.tensors,
        vision_body(
            patch_size=32,
            embedding={"class_token": False},
            width=f.Int("hidden_size", default=width),
            norm=layer_norm("layer_norm_eps", default=1e-6),
            heads=f.Int("num_attention_heads", default=heads),
            hidden=f.Int("intermediate_size", default=3072),
            activation=f.Activation("hidden_act", "gelu_pytorch_tanh"),
        ),
        {class_name: HeadClass("none")},
        ignored=ignored,
    )


def read_images(images: Family, config: Config) -> Data:
    """The spec of the encoder of images; a grid whose positions the reference does not tell apart is refused."""
    seen = config.inner(VISION_CONFIG)
    body = images.body_spec(seen, *images.classes)
    if fault := fault_of_side(body["embedding"]["image_size"] // body["embedding"]["patch_size"]):
        seen.refuse("image_size", fault)
    return body


def write_images(images: Family, model: Model) -> Data:
    """The config of the encoder of images.  Raises UnfitError where the reference does not tell its positions apart."""
    seen = images_of(model)
    patches = patches_of(seen)
    if fault := fault_of_side(patches.side):
        raise UnfitError(f"images whose patch_size {fault}")
    data = images.body_config(seen, *images.classes)
    del data["architectures"]
    return data


class _Idefics3(Family):
    """An image encoder, and a decoder with the config of its own family."""

    @property
    def images(self) -> Family:
        """The family of the encoder of images."""
        of_training = ("max_image_size", "size", "use_base_siglip")
        return images_of_siglip(
            f"{self.model_type}_vision", _VISION_CLASS, width=1152, heads=16, ignored=of_training
        )

    def spec(self, config: Config, class_name: str) -> Data:
        body = read_images(self.images, config)
        connector = {"kind": "linear", "bias": False, **read(_CONNECTOR, config)}
        tied = config.bool(TIED, default=False)
        config.ignore("vocab_size", "image_seq_len", "use_reentrant_checkpointing")
        return joined(decoder_spec(config, _TEXT_OF_TRAINING), body, connector, tied=tied)

    def config(self, model: Model, class_name: str) -> Data:
        connector_of(model, LinearConnector)
        images = write_images(self.images, model)
        return reader_config(
            self, class_name, model, images=images, connector=_CONNECTOR, text=decoder_config(model)
        )


_TENSORS = Tensors(
    "idefics3",
    (
        *image_rules(SIGLIP.tensors.rules, "model.vision_model."),
        same("model.connector.modality_projection.proj.weight", "connector.projection.weight"),
        *decoder_rules("model.text_model."),
    ),
    heads={"language_modeling": (same("lm_head.weight", "head.vocabulary.weight"),)},
    optional=("lm_head.weight",),
)

FAMILIES = (
    _Idefics3(
        "idefics3",
        _TENSORS,
        classes={"Idefics3ForConditionalGeneration": HeadClass("language_modeling")},
    ),
    _Idefics3(
        "smolvlm",
        _TENSORS,
        classes={"SmolVLMForConditionalGeneration": HeadClass("language_modeling")},
    ),
)
