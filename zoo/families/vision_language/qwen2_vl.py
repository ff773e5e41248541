"""Qwen2-VL (Wang et al., 2024): ``Qwen2VLForConditionalGeneration``, images of any size among the tokens of Qwen2, which rotate by
frame, row and column."""

from __future__ import annotations

from dataclasses import replace

from zoo.families.common import fields as f
from zoo.families.common.blocks import mlp
from zoo.families.common.family import Family, HeadClass
from zoo.families.common.heads import decoder_classes
from zoo.families.common.layers import Layers
from zoo.families.common.llama_like import LLAMA, LlamaFields
from zoo.families.common.qwen import LAST_LAYERS
from zoo.families.common.qwen_vl import AxialRopeField, QwenVL, SectionedRope, image_tensors, packed_embedding
from zoo.families.common.tensors import Tensors, affine, same
from zoo.families.common.vision_language import decoder_rules, image_rules

_NORM = {"kind": "layer_norm", "eps": 1e-6}
_WIDTH = f.Int("embed_dim", default=1280)


VISION = Family(
    "qwen2_vl_vision",
    image_tensors("qwen2_vl_vision", {"mlp.fc1": "feed_forward.up", "mlp.fc2": "feed_forward.down"}),
    {
        "architecture": "encoder",
        "d_model": _WIDTH,
        "position": AxialRopeField(),
        "embedding": packed_embedding(),
        "encoder": Layers(
            f.Depth("depth", default=32),
            {
                "kind": "pre_norm",
                "norm": _NORM,
                "attention": {"kind": "multi_head", "heads": f.Int("num_heads", default=16)},
                "feed_forward": mlp(f.Multiple(f.Int("mlp_ratio", default=4), _WIDTH), "quick_gelu"),
            },
        ),
    },
    {"Qwen2VLVisionModel": HeadClass("none")},
)  # fmt: skip
"""The encoder of images; it has no norm after its layers."""

_FIELDS = LlamaFields(
    vocab_size=152064,
    hidden_size=8192,
    intermediate_size=29568,
    layers=80,
    heads=64,
    kv_heads=8,
    context=32768,
    eps=1e-5,
)
_BIAS = {"query": True, "key": True, "value": True, "output": False}
TEXT = Family(
    "qwen2_vl_text",
    LLAMA,
    _FIELDS.body(
        attention={"bias": _BIAS},
        position=SectionedRope(_FIELDS.heads.width, _FIELDS.context, theta=1e6),
        varies=(LAST_LAYERS,),
    ),
    decoder_classes("Qwen2"),
)
"""The decoder."""


def tensors_of(model_type: str, vision: Family) -> Tensors:
    """The tensors of the whole model, also by the names before transformers 4.52; ``vision`` has the rules of the image encoder."""
    rules = (
        *image_rules(vision.tensors.rules, "model.visual."),
        *affine("model.visual.merger.ln_q", "connector.norm"),
        *affine("model.visual.merger.mlp.0", "connector.up"),
        *affine("model.visual.merger.mlp.2", "connector.down"),
        *decoder_rules("model.language_model."),
    )

    def old(stored: str) -> str:
        return stored.replace("model.visual.", "visual.").replace("model.language_model.", "model.")

    return Tensors(
        model_type,
        tuple(replace(rule, also=(old(rule.stored),)) for rule in rules),
        heads={"language_modeling": (same("lm_head.weight", "head.vocabulary.weight"),)},
        optional=("lm_head.weight",),
    )


FAMILIES = (
    QwenVL(
        "qwen2_vl",
        tensors_of("qwen2_vl", VISION),
        classes={"Qwen2VLForConditionalGeneration": HeadClass("language_modeling")},
        images=VISION,
        text=TEXT,
        norm=_NORM,
        out="hidden_size",
        flat=True,
        ties_as_text=True,
    ),
)
