"""Qwen3-VL-MoE (Qwen team, 2025): ``Qwen3VLMoeForConditionalGeneration``, Qwen3-VL with the mixtures of Qwen3-MoE."""

from __future__ import annotations

from zoo.families.common import fields as f
from zoo.families.common.family import Family, HeadClass
from zoo.families.common.heads import decoder_classes
from zoo.families.common.llama_like import BLOCK, LAYER, LlamaFields, layer_weights, llama_tensors
from zoo.families.common.mixtures import TRAINING
from zoo.families.common.qwen import SparseStep, qwen_mixture
from zoo.families.common.qwen_vl import QwenVL
from zoo.families.common.tensors import Rule, Tensors, same
from zoo.families.common.transforms import SAME, Stacked, Transform, Transposed
from zoo.families.common.vision_language import decoder_rules
from zoo.families.vision_language.qwen3_vl import NORM, OF_IMAGES, VISION, InterleavedRope

_FIELDS = LlamaFields(
    vocab_size=151936, hidden_size=2048, intermediate_size=5632, layers=24, heads=16, kv_heads=16, context=128000
)  # fmt: skip
_EXPERTS, _OURS = f"{LAYER}mlp.experts.", f"{BLOCK}feed_forward.experts."


def experts_in_one(gate_up: Transform, down: Transform) -> tuple[Rule, ...]:
    """The experts of a layer, each matrix of all of them as one tensor."""
    return (
        Rule(f"{_EXPERTS}gate_up_proj", (f"{_OURS}gate.weight", f"{_OURS}up.weight"), gate_up),
        Rule(f"{_EXPERTS}down_proj", (f"{_OURS}down.weight",), down),
    )


def _decoder(experts: tuple[Rule, ...]) -> Tensors:
    return llama_tensors("qwen3_vl_moe_text", *layer_weights({"mlp.gate": "feed_forward.router"}), *experts)


TEXT = Family(
    "qwen3_vl_moe_text",
    _decoder(experts_in_one(Stacked(1), SAME)),
    _FIELDS.body(
        attention={"bias": f.Bias("attention_bias", default=False), "qk_norm": _FIELDS.qk_norm},
        position=InterleavedRope(_FIELDS.heads.width, _FIELDS.context, theta=5e5),
        feed_forward=qwen_mixture(_FIELDS, 60, 4, 1408, router={"normalize": True}),
        varies=(SparseStep(_FIELDS.feed_forward()),),
    ),
    decoder_classes("Qwen3Moe"),
    fixed={"norm_topk_prob": (True, "the reference divides the weights of experts by their sum")},
    ignored=TRAINING,
)
"""The decoder."""


def _whole(decoder: Tensors, other: Tensors | None = None) -> Tensors:
    return Tensors(
        "qwen3_vl_moe",
        (*OF_IMAGES, *decoder_rules("model.language_model.", decoder.rules)),
        heads={"language_modeling": (same("lm_head.weight", "head.vocabulary.weight"),)},
        optional=("lm_head.weight",),
        other=other,
    )


_TRANSPOSED = _decoder(experts_in_one(Transposed(Stacked(1)), Transposed()))
"""The decoder as published, and written by transformers before 5: matrices of experts are d_in x d_out."""

FAMILIES = (
    QwenVL(
        "qwen3_vl_moe",
        _whole(TEXT.tensors, _whole(_TRANSPOSED)),
        classes={"Qwen3VLMoeForConditionalGeneration": HeadClass("language_modeling")},
        images=VISION,
        text=TEXT,
        norm=NORM,
        deep=True,
    ),
)
