"""Parts of Qwen's vision-language families: images of any size, and rotation by frame, row and column."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from specs.kinds.connector import MlpConnector
from specs.kinds.packed_patches import PackedPatches
from specs.kinds.patch_positions import AxialRope
from specs.kinds.position import PositionKind
from specs.model.model import Model
from zoo.families.common import fields as f
from zoo.families.common.config import Config
from zoo.families.common.family import Family
from zoo.families.common.images import SquareSide
from zoo.families.common.rope import RopeField, rope_of
from zoo.families.common.template import Data, Field, FieldContext, Template, UnfitError
from zoo.families.common.tensors import Rule, Tensors, fused, modules
from zoo.families.common.transforms import SAME, Transform, Unfolded
from zoo.families.common.vision_language import (
    TEXT_CONFIG,
    TIED,
    VISION_CONFIG,
    decoder_alone,
    images_of,
    joined,
)

_TOKENS = ("video_token_id", "vision_start_token_id", "vision_end_token_id", "vision_token_id")
_SECTION, _INTERLEAVED, _DEEP = "mrope_section", "mrope_interleaved", "deepstack_visual_indexes"


class SectionedRope(RopeField):
    """A rotary position whose pairs rotate by frame, row and column; ``default`` are their numbers without a list."""

    default: tuple[int, int, int] = (16, 24, 24)
    interleaved: bool = False

    def read_parameters(self, config: Config, parameters: Config, theta: float | None = None) -> Data:
        pairs = parameters.list(_SECTION, default=[*self.default])
        if len(pairs) != 3 or not all(type(count) is int and count >= 0 for count in pairs):
            parameters.refuse(
                _SECTION, "must be the numbers of pairs for frame, row and column", "Use [16, 24, 24]."
            )
        position = super().read_parameters(config, _without_sections(parameters), theta)
        turns = {"interleaved": True} if self.interleaved else {}
        return {**position, "sections": {"pairs": pairs, **turns}}

    def write(self, value: PositionKind, context: FieldContext) -> Data:
        rope = rope_of(value)
        if rope.sections is None:
            raise UnfitError("position without sections")
        fields = super().write(value, context)
        scaling = fields["rope_scaling"] or {"rope_type": "default"}
        turns = {_INTERLEAVED: True} if self.interleaved else {}
        return {**fields, "rope_scaling": {**scaling, _SECTION: [*rope.sections.pairs], **turns}}


def _without_sections(parameters: Config) -> Config:
    """Rotary parameters without the sections."""
    mine = (
        _SECTION,
        _INTERLEAVED,
        *(name for name in ("rope_type", "type") if parameters.data.get(name) == "mrope"),
    )
    return parameters.of({name: value for name, value in parameters.data.items() if name not in mine})


class RopeOfText(RopeField):
    """The rotary position of text alone in a model whose heads have sections: text counts alike along all axes."""

    def read_parameters(self, config: Config, parameters: Config, theta: float | None = None) -> Data:
        return super().read_parameters(config, _without_sections(parameters), theta)

    def write(self, value: PositionKind, context: FieldContext) -> Data:
        fields = super().write(value, context)
        pairs = (rope_of(value).dimensions or context.head_width()) // 2
        scaling = fields["rope_scaling"] or {"rope_type": "default"}
        return {**fields, "rope_scaling": {**scaling, _SECTION: [pairs, 0, 0]}}


class AxialRopeField(Field):
    """The rotation of patches by row and column."""

    component = AxialRope

    def __init__(self, rope_type: str = "axial", coordinates: str = "index", theta: float = 10000.0) -> None:
        self.rope_type, self.coordinates, self.theta = rope_type, coordinates, theta

    def read(self, config: Config) -> Data:
        parameters = config.part("rope_parameters") or Config({}, config.where)
        parameters.must("rope_type", self.rope_type, "images rotate by row and column")
        theta = parameters.float("rope_theta", default=self.theta)
        parameters.finish()
        return {"kind": "axial_rope", "coordinates": self.coordinates, "theta": theta}

    def write(self, value: AxialRope, context: FieldContext) -> Data:
        return {"rope_parameters": {"rope_type": self.rope_type, "rope_theta": value.theta}}


def packed_embedding(patch_size: int = 14, *, bias: bool = False) -> dict[str, Template]:
    """The template of the embedding of patches."""
    return {
        "kind": "packed_patches",
        "patch_size": SquareSide("patch_size", default=patch_size),
        "frames": SquareSide("temporal_patch_size", default=2),
        "channels": f.Int("in_channels", "in_chans", default=3),
        "bias": bias,
    }


def unfolded(spec: Model) -> Transform:
    """The stored form of the projection of patches: a convolution over channels, frames, rows and columns."""
    patches = spec.embedding if spec.image is None else spec.embedding_of(spec.image)
    if not isinstance(patches, PackedPatches):  # a spec of another family, whose names are compared
        return SAME
    return Unfolded((patches.channels, patches.frames, patches.patch_size, patches.patch_size))


def image_tensors(model_type: str, feed_forward: Mapping[str, str], *others: Rule) -> Tensors:
    """The tensors of an encoder of images; ``feed_forward`` names its matrices, and ``others`` are rules outside the layers."""
    ours = "encoder.blocks.{layer}."
    names = {
        "norm1": "attention_norm",
        "attn.proj": "attention.output",
        "norm2": "feed_forward_norm",
        **feed_forward,
    }
    layer = modules(names, "blocks.{layer}.", ours)
    parts = tuple(f"{ours}attention.{name}" for name in ("query", "key", "value"))
    inputs = fused("blocks.{layer}.attn.qkv", parts)
    patches = Rule("patch_embed.proj.weight", ("embedding.patch.weight",), unfolded)
    return Tensors(model_type, (patches, *others, *layer, *inputs))


@dataclass(frozen=True, kw_only=True)
class QwenVL(Family):
    """An image encoder and a decoder, whose fields old configs have at the top level.

    ``norm`` is that of the connector; ``out`` the field of the width that images become. Configs are written with the decoder's
    fields among those of the whole where ``flat``, as clients read them. ``deep``: vectors of earlier layers are read too, with
    the same norm after they are joined.  ``token`` is the usual placeholder. ``ties_as_text``: the reference ties the decoder's table
    where the decoder's config says so, too, as before transformers 5.
    """

    images: Family
    text: Family
    norm: Mapping[str, Any]
    out: str = "out_hidden_size"
    flat: bool = False
    deep: bool = False
    token: int = 151655
    ties_as_text: bool = False

    def spec(self, config: Config, class_name: str) -> Data:
        config.ignore(*_TOKENS)
        text, tied = config, config.bool(TIED, default=False)
        if (inner := config.part(TEXT_CONFIG)) is not None:
            tied = tied or (self.ties_as_text and inner.bool(TIED, default=False))
            text = config.model(TEXT_CONFIG, (self.text.model_type,), (TIED,))
            text.ignore("image_token_id", *_TOKENS)
        decoder = self.text.spec(text, next(iter(self.text.classes)))
        seen = config.inner(VISION_CONFIG)
        seen.ignore("spatial_patch_size")
        images = self.images.body_spec(seen, next(iter(self.images.classes)))
        square = seen.int("spatial_merge_size", default=2)
        deep = {} if not self.deep else self._deepstack(seen, images["encoder"]["layers"])
        seen.must(self.out, decoder["d_model"], "images among tokens are as wide as these")
        connector = {
            "kind": "mlp",
            "token": config.int("image_token_id", default=self.token),
            "shuffle": square,
            "norm": self.norm,
            "hidden": images["d_model"] * square**2,
            "activation": "gelu",
            **deep,
        }
        return joined(decoder, images, connector, tied=tied, final_norm=False)

    def _deepstack(self, seen: Config, depth: int) -> Data:
        """The layers of images whose vectors are added after layers of the decoder."""
        layers = seen.list(_DEEP, default=[8, 16, 24])
        if not all(type(layer) is int and 0 <= layer < depth for layer in layers) or layers != sorted(
            set(layers)
        ):
            seen.refuse(_DEEP, f"must be layers by number, in order, from 0 to {depth - 1}")
        return {"deepstack": {"layers": layers, "norm": self.norm}} if layers else {}

    def config(self, model: Model, class_name: str) -> Data:
        seen, connector = images_of(model), model.connector
        if not isinstance(connector, MlpConnector) or not isinstance(seen.embedding, PackedPatches):
            raise UnfitError("connector or images of another kind")
        assert model.image is not None
        if model.image.ends_with_norm:
            raise UnfitError("image.final_norm")
        images = self.images.body_config(seen, next(iter(self.images.classes)))
        if self.deep:
            images[_DEEP] = list(connector.deepstack.layers) if connector.deepstack else []
        text = self.text.config(decoder_alone(model), next(iter(self.text.classes)))
        del images["architectures"]
        return {
            **(text if self.flat else {TEXT_CONFIG: text}),
            "architectures": [class_name],
            "model_type": self.model_type,
            VISION_CONFIG: {
                **images,
                "spatial_merge_size": connector.shuffle,
                self.out: model.output_width,
            },
            TIED: text[TIED],
            "image_token_id": connector.token,
        }
