"""Qwen3-VL (Qwen team, 2025): ``Qwen3VLForConditionalGeneration``, images of any size with interpolated positions among the tokens of
Qwen3, and vectors of earlier layers of images in the first layers of the decoder."""

from __future__ import annotations

import math

from specs.kinds.patch_positions import Interpolated
from zoo.families.common import fields as f
from zoo.families.common.blocks import mlp
from zoo.families.common.family import Family, HeadClass
from zoo.families.common.heads import decoder_classes
from zoo.families.common.layers import Layers
from zoo.families.common.llama_like import LLAMA, LlamaFields
from zoo.families.common.qwen_vl import AxialRopeField, QwenVL, SectionedRope, image_tensors, packed_embedding
from zoo.families.common.tensors import Tensors, affine, same
from zoo.families.common.vision_language import decoder_rules, image_rules

NORM = {"kind": "layer_norm", "eps": 1e-6}
_GRID = f.Mapped(
    f.Checked(
        f.Int("num_position_embeddings", default=2304),
        lambda count: count >= 1 and math.isqrt(count) ** 2 == count,
        "must be a square number: positions have rows and columns",
    ),
    lambda count: {"kind": "interpolated", "side": math.isqrt(count)},
    lambda position: position.side**2,
    Interpolated,
)
"""A square grid of positions, whose number configs state."""


class InterleavedRope(SectionedRope):
    """Sections whose axes take turns, which the reference does whatever the config says."""

    default = (24, 20, 20)
    interleaved = True


VISION = Family(
    "qwen3_vl_vision",
    image_tensors(
        "qwen3_vl_vision", {"mlp.linear_fc1": "feed_forward.up", "mlp.linear_fc2": "feed_forward.down"},
        same("patch_embed.proj.bias", "embedding.patch.bias"), same("pos_embed.weight", "embedding.position.table.weight"),
    ),
    {
        "architecture": "encoder",
        "d_model": f.Int("hidden_size", default=1152),
        "position": _GRID,
        "embedding": packed_embedding(16, bias=True),
        "encoder": Layers(
            f.Depth("depth", default=27),
            {
                "kind": "pre_norm",
                "norm": NORM,
                "attention": {
                    "kind": "multi_head",
                    "heads": f.Int("num_heads", default=16),
                    "position": AxialRopeField(),
                },
                "feed_forward": mlp(4304, "gelu_pytorch_tanh"),
            },
        ),
    },
    {"Qwen3VLVisionModel": HeadClass("none")},
)  # fmt: skip
"""The encoder of images; it has no norm after its layers."""

_FIELDS = LlamaFields(vocab_size=151936, intermediate_size=22016, kv_heads=32, head_dim=128, context=128000)
TEXT = Family(
    "qwen3_vl_text",
    LLAMA,
    _FIELDS.body(
        attention={"bias": f.Bias("attention_bias", default=False), "qk_norm": _FIELDS.qk_norm},
        position=InterleavedRope(_FIELDS.heads.width, _FIELDS.context, theta=5e5),
    ),
    decoder_classes("Qwen3"),
)
"""The decoder."""

_DEEP = "model.visual.deepstack_merger_list.{deep}."
IMAGE_FEATURES = (
    *image_rules(VISION.tensors.rules, "model.visual."),
    *affine("model.visual.merger.norm", "connector.norm"),
    *affine("model.visual.merger.linear_fc1", "connector.up"),
    *affine("model.visual.merger.linear_fc2", "connector.down"),
)
"""The tensors of images and of the connector."""
OF_IMAGES = (
    *IMAGE_FEATURES,
    *affine(f"{_DEEP}norm", "deep_connectors.{deep}.joined_norm"),
    *affine(f"{_DEEP}linear_fc1", "deep_connectors.{deep}.up"),
    *affine(f"{_DEEP}linear_fc2", "deep_connectors.{deep}.down"),
)

FAMILIES = (
    QwenVL(
        "qwen3_vl",
        Tensors(
            "qwen3_vl",
            (*OF_IMAGES, *decoder_rules("model.language_model.")),
            heads={"language_modeling": (same("lm_head.weight", "head.vocabulary.weight"),)},
            optional=("lm_head.weight",),
        ),
        classes={"Qwen3VLForConditionalGeneration": HeadClass("language_modeling")},
        images=VISION,
        text=TEXT,
        norm=NORM,
        deep=True,
    ),
)
