"""Qwen3.5 (Qwen team, 2026): ``Qwen3_5ForConditionalGeneration`` and ``Qwen3_5MoeForConditionalGeneration``, the images of Qwen3-VL
without DeepStack among the tokens of a decoder with gated attention in some layers and Gated DeltaNet in the others."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from zoo.families.common.family import Family, HeadClass
from zoo.families.common.llama_like import LlamaFields
from zoo.families.common.qwen_vl import QwenVL
from zoo.families.common.tensors import Tensors, same
from zoo.families.common.vision_language import decoder_rules
from zoo.families.hybrids.qwen3_next import DENSE, QWEN3_5, QWEN3_5_MOE, SPARSE
from zoo.families.vision_language.qwen3_vl import IMAGE_FEATURES, NORM, VISION, InterleavedRope


class _QuarterRope(InterleavedRope):
    """Sections of the rotated quarter of a head."""

    default = (11, 11, 10)


def _whole(model_type: str, class_name: str, text: Family, fields: LlamaFields) -> QwenVL:
    """A family with images and this decoder, whose tokens rotate by frame, row and column."""
    assert isinstance(text.body, Mapping)
    position = _QuarterRope(fields.heads.width, fields.context, fraction=0.25)
    images = replace(
        VISION,
        model_type=f"{model_type}_vision",
        fixed={"deepstack_visual_indexes": ([], "the reference adds nothing to layers of the decoder")},
    )
    return QwenVL(
        model_type,
        Tensors(
            model_type,
            (*IMAGE_FEATURES, *decoder_rules("model.language_model.", text.tensors.rules)),
            heads={"language_modeling": (same("lm_head.weight", "head.vocabulary.weight"),)},
            optional=("lm_head.weight",),
            unused=text.tensors.unused,
            next_token=text.tensors.next_token,
            text=replace(
                text.tensors,
                prefix="model.language_model.",
                unused=(*text.tensors.unused, "model.visual.*"),
                next_token=None,
            ),
        ),
        classes={class_name: HeadClass("language_modeling")},
        images=images,
        text=replace(text, body={**text.body, "position": position}),
        norm=NORM,
        token=248056,
    )


FAMILIES = (
    _whole("qwen3_5", "Qwen3_5ForConditionalGeneration", QWEN3_5, DENSE),
    _whole("qwen3_5_moe", "Qwen3_5MoeForConditionalGeneration", QWEN3_5_MOE, SPARSE),
)
