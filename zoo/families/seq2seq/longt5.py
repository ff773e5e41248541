"""LongT5 (Guo et al., 2021): ``LongT5Config`` and its models: T5 1.1, whose encoder sees a window, and with transient global
attention also sums of blocks of tokens."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any

from specs.kinds.block_summaries import MOST
from specs.kinds.vocabulary_heads import LanguageModeling
from zoo.families.common import fields as f
from zoo.families.common.config import Config
from zoo.families.common.family import Family, HeadClass
from zoo.families.common.heads import BODY
from zoo.families.common.template import Data, Field, FieldContext, UnfitError
from zoo.families.common.tensors import Rule, same
from zoo.families.seq2seq.t5 import FIXED, OF_CONFIG, T5Fields, t5_feed_forward, t5_tensors

_SCORES = "lm_head.weight"


class _Scores(Field):
    """Tying and scaling of LongT5: transformers 4 had both or neither, as tie_word_embeddings states; transformers 5, which states
    scale_decoder_outputs, ties where no output matrix is stored, and scales as tie_word_embeddings states."""

    component = LanguageModeling

    def read(self, config: Config) -> Data:
        old = config.bool("tie_word_embeddings", default=True)
        later = config.has("scale_decoder_outputs")
        scaled = config.bool("scale_decoder_outputs", default=old)
        tied = not config.stores(_SCORES) if old or later else config.lacks(_SCORES)
        return {"tie_embeddings": tied, "scale": "inverse_sqrt_d_model" if scaled else None}

    def write(self, value: Any, context: FieldContext) -> Data:
        scaled = value.scale is not None
        later = {"scale_decoder_outputs": False} if value.tie_embeddings and not scaled else {}
        return {"tie_word_embeddings": scaled, **later}


def _radius(window: int | None) -> int:
    if window is None:
        raise UnfitError("encoder.block.attention without a window")
    return window // 2


_WINDOW = f.Mapped(f.Positive("local_radius", default=127), lambda radius: 2 * radius, _radius)
"""A window on both sides, as the number of tokens on either."""
_SUMMARIES = f.When(
    f.Choice("encoder_attention_type", {"local": False, "transient-global": True}, "local"),
    {
        "size": f.Checked(
            f.Int("global_block_size", default=16),
            lambda size: 0 < size <= MOST and not size & (size - 1),
            f"must be a power of 2 up to {MOST}",
        ),
        "norm": {"kind": "rms_norm", "eps": f.Float("layer_norm_epsilon", default=1e-6)},
    },
)
"""The sums of blocks of tokens that transient global attention sees."""

_FIELDS = T5Fields(
    t5_feed_forward("relu", 2048),
    heads=8,
    layers=6,
    vocab_size=32128,
    encoder_attention={"window": _WINDOW, "block_summaries": _SUMMARIES},
)
_LOCAL, _SIDE = ".LocalSelfAttention.", ".TransientGlobalSelfAttention."
_NORM, _TABLE = (
    "encoder.blocks.{layer}.attention.summaries.norm.weight",
    "encoder.position.block_table.weight",
)


def _with_summaries(rules: Iterable[Rule]) -> Iterator[Rule]:
    """The rules of the encoder's attention under its name with block summaries, and the rules of the summaries."""
    for rule in rules:
        if _LOCAL in rule.stored:
            beside = _TABLE if rule.parameters[0].startswith("encoder.position.") else _NORM
            yield replace(rule, stored=rule.stored.replace(_LOCAL, _SIDE), beside=beside)
    yield same(f"encoder.block.{{layer}}.layer.0{_SIDE}global_input_layer_norm.weight", _NORM)
    yield same(f"encoder.block.0.layer.0{_SIDE}global_relative_attention_bias.weight", _TABLE)


_TENSORS = t5_tensors("longt5", "DenseReluDense", attention="LocalSelfAttention")

FAMILIES = (
    Family(
        "longt5",
        replace(_TENSORS, rules=(*_TENSORS.rules, *_with_summaries(_TENSORS.rules))),
        _FIELDS.body(),
        {
            "LongT5ForConditionalGeneration": HeadClass("language_modeling", {"*": _Scores()}),
            "LongT5Model": BODY,
            "LongT5EncoderModel": HeadClass("none", body=_FIELDS.body(decoder=False)),
        },
        fixed=FIXED,
        ignored=("global_block_size", *OF_CONFIG),
    ),
)
