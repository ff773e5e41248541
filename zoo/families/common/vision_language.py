"""Vision-language families whose configs hold the configs of an image encoder and a decoder: LLaVA, Idefics 3, Gemma 3,
PaliGemma."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, TypeVar

from specs.base.base import Component
from specs.kinds.head import NoHead
from specs.kinds.patches import Patches
from specs.model.model import Model
from zoo.families.common.config import Config
from zoo.families.common.dual import rules_of_tower
from zoo.families.common.family import Family
from zoo.families.common.held import PARTS, also_named
from zoo.families.common.llama_like import LLAMA
from zoo.families.common.parts import alone
from zoo.families.common.template import Data, FieldContext, Template, UnfitError, write
from zoo.families.common.tensors import Rule, Tensors, same

Connected = TypeVar("Connected", bound=Component)

TEXT_CONFIG, VISION_CONFIG = "text_config", "vision_config"
"""The fields that hold the configs of the decoder and of the image encoder."""

TIED = "tie_word_embeddings"

LAYER = "vision_feature_layer"
"""The field of the layer of images whose output is read."""


def layers_seen(config: Config, depth: int, default: int) -> int:
    """The number of layers of images, of ``depth``, up to the one whose output is read."""
    layer: int = config.int(LAYER, default=default)
    if not -depth <= layer <= -1:
        config.refuse(LAYER, f"must be from {-depth} to -1: layers are counted from the last")
    return depth + 1 + layer


def decoder_alone(model: Model) -> Model:
    """The decoder of a model that reads images, as a model of its own."""
    assert model.decoder is not None
    stack = model.decoder.model_copy(update={"bidirectional": None})
    return alone(model, "decoder", stack, {"image": None, "connector": None})


def joined(decoder: Data, images: Data, connector: Data, *, tied: bool, **stack: Any) -> Data:
    """The spec of a decoder that reads images by way of a connector; ``stack`` replaces keys of the stack of images."""
    own = {name: images[name] for name in ("d_model", "embedding", "position")}
    return {
        **decoder,
        "architecture": "vision-language",
        "image": {**images["encoder"], **own, **stack},
        "connector": connector,
        "head": {**decoder["head"], "tie_embeddings": tied},
    }


def reader_config(
    family: Family,
    class_name: str,
    model: Model,
    *,
    images: Data,
    connector: Template,
    text: Data,
    **fields: Any,
) -> Data:
    """The config of a decoder that reads images, made of the configs of its parts."""
    return {
        "architectures": [class_name],
        "model_type": family.model_type,
        VISION_CONFIG: images,
        TEXT_CONFIG: text,
        TIED: text[TIED],
        **fields,
        **write(connector, model.connector, FieldContext.of(model, "connector")),
    }


def connector_of(model: Model, kind: type[Connected]) -> Connected:
    """The connector of a model.  Raises :class:`UnfitError` unless it is of a ``kind``."""
    if not isinstance(model.connector, kind):
        raise UnfitError(f"connector.kind {getattr(model.connector, 'kind', None)}")
    return model.connector


def reader_tensors(
    name: str, *rules: Rule, optional: tuple[str, ...] = (), unused: tuple[str, ...] = ()
) -> Tensors:
    """The tensors of a decoder that reads images, whose parts transformers 4 and 5 name differently."""
    head = (same("language_model.lm_head.weight", "head.vocabulary.weight"),)
    return Tensors(
        name,
        also_named(rules, *PARTS),
        heads={"language_modeling": also_named(head, *PARTS)},
        optional=(*optional, "language_model.lm_head.weight", "lm_head.weight"),
        unused=unused,
    )


def images_of(model: Model) -> Model:
    """The encoder of images as a model of its own.  Raises :class:`UnfitError` for models that have none among tokens."""
    if model.architecture != "vision-language":
        raise UnfitError(f"architecture {model.architecture}")
    assert model.image is not None
    without: dict[str, Any] = dict.fromkeys(("image", "connector", "decoder", "vocab_size", "context_length"))
    return alone(model, "encoder", model.image, {**without, "head": NoHead()})


def patches_of(images: Model) -> Patches:
    """The patches that an encoder of images reads.  Raises :class:`UnfitError` for other embeddings."""
    if not isinstance(images.embedding, Patches):
        raise UnfitError(f"image.embedding.kind {getattr(images.embedding, 'kind', None)}")
    return images.embedding


def image_rules(rules: tuple[Rule, ...], prefix: str, also: str | None = None) -> tuple[Rule, ...]:
    """The rules of an encoder of images without its head, stored under a ``prefix``, or ``also`` under another."""
    body = (rule for rule in rules if not rule.parameters[0].startswith("head."))
    return tuple(
        replace(rule, also=() if also is None else (rule.stored.replace(prefix, also, 1),))
        for rule in rules_of_tower("image", tuple({rule.parameters: rule for rule in body}.values()), prefix)
    )


def decoder_rules(prefix: str, rules: tuple[Rule, ...] = LLAMA.rules) -> tuple[Rule, ...]:
    """The rules of a decoder, by default one like Llama, stored under a ``prefix``."""
    return tuple(
        replace(rule, stored=f"{prefix}{rule.stored}", also=tuple(f"{prefix}{name}" for name in rule.also))
        for rule in rules
    )
