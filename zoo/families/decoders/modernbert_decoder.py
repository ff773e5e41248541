"""The decoder of ModernBERT (Weller et al., 2025: Ettin): ``ModernBertDecoderConfig``, ``ModernBertDecoderModel`` and its heads.

Windows are half as wide, as tokens see one side; queries, keys and values are stored one by one.
"""

from __future__ import annotations

from typing import Any

from zoo.families.common import fields as f
from zoo.families.common.config import Config
from zoo.families.common.family import Family, HeadClass
from zoo.families.common.heads import BODY, Labels, language_modeling
from zoo.families.common.modernbert import (
    ANSWERS,
    TRANSFORM,
    modernbert_body,
    modernbert_tensors,
    transform_tensors,
)
from zoo.families.common.template import Data, FieldContext
from zoo.families.common.tensors import affine, modules, projections


class _OneSidedWindow(f.Int):
    """The window of causal layers: half of ``local_attention``, unless it is stated."""

    def __init__(self) -> None:
        both_sides = f.Int("local_attention", default=128)
        super().__init__("sliding_window", default=f.Derived(lambda config: both_sides.read(config) // 2))

    def read(self, config: Config) -> int:
        window: int = super().read(config)
        if window < 1:
            has_window = config.has("sliding_window")
            config.refuse(
                self.names[0] if has_window else "local_attention",
                f"must be {1 if has_window else 2} or more",
            )
        config.ignore("local_attention")
        return window

    def write(self, value: Any, context: FieldContext) -> Data:
        both_sides = {} if value is None else {"local_attention": 2 * value}
        return {**super().write(value, context), **both_sides}


_TENSORS = modernbert_tensors(
    "modernbert-decoder",
    "decoder",
    modules(projections("attn.", "q_proj k_proj v_proj"), "layers.{layer}.", "decoder.blocks.{layer}."),
    {
        "language_modeling": (*transform_tensors("lm_head"), *affine("decoder", "head.vocabulary")),
        "classification": (*transform_tensors("head"), *affine("classifier", "head.labels")),
    },
    "lm_head.",
    "head.",
    "decoder.",
    "classifier.",
)
_BIAS = f.Bool("classifier_bias", default=False)

FAMILIES = (
    Family(
        "modernbert-decoder",
        _TENSORS,
        modernbert_body("decoder", _OneSidedWindow(), pad_token_id=0),
        {
            "ModernBertDecoderForCausalLM": language_modeling(
                tied=True, **TRANSFORM, bias=f.Bool("decoder_bias", default=True)
            ),
            "ModernBertDecoderModel": BODY,
            "ModernBertDecoderForSequenceClassification": HeadClass(
                "classification", {"labels": Labels(), **ANSWERS, "pooling": "last", "bias": _BIAS}
            ),
        },
        ignored=(
            *(f"classifier_{name}" for name in ("activation", "bias", "dropout")),
            "decoder_bias",
            "initializer_cutoff_factor",
        ),
    ),
)
