"""LongT5 (Guo et al., 2021) with local attention: ``LongT5Config`` and its models: T5 1.1, whose encoder sees a window."""

from __future__ import annotations

from typing import Any

from zoo.families.common.config import Config
from zoo.families.common.family import Family, HeadClass
from zoo.families.common.heads import BODY
from zoo.families.common.template import Data, Field, Place, UnfitError
from zoo.families.t5 import FIXED, OF_CONFIG, t5_body, t5_feed_forward, t5_tensors


class _Scores(Field):
    """Tying and scaling of LongT5: scaled as T5 is, and tied where no output matrix is stored."""

    def read(self, config: Config) -> Data:
        old = config.bool("tie_word_embeddings", default=True)
        scaled = config.bool("scale_decoder_outputs", default=old)
        tied = not config.stores("lm_head.weight")
        return {"tie_embeddings": tied, "scale": "inverse_sqrt_d_model" if scaled else None}

    def write(self, value: Any, place: Place) -> Data:
        return {"tie_word_embeddings": value.scale is not None}


class _Radius(Field):
    """A window on both sides, as the number of tokens on either."""

    def read(self, config: Config) -> int:
        radius = config.int("local_radius", default=127)
        if radius < 1:
            config.refuse("local_radius", "must be at least 1")
        return 2 * int(radius)

    def write(self, value: Any, place: Place) -> Data:
        if value is None:
            raise UnfitError("encoder.block.attention without a window")
        return {"local_radius": value // 2}


_DEFAULTS: dict[str, Any] = {
    "feed_forward": t5_feed_forward("relu", 2048),
    "heads": 8,
    "layers": 6,
    "vocab_size": 32128,
    "window": _Radius(),
}

FAMILIES = (
    Family(
        "longt5",
        t5_tensors("longt5", "DenseReluDense", attention="LocalSelfAttention"),
        t5_body(**_DEFAULTS),
        {
            "LongT5ForConditionalGeneration": HeadClass("language_modeling", {"*": _Scores()}),
            "LongT5Model": BODY,
            "LongT5EncoderModel": HeadClass("none", body=t5_body(**_DEFAULTS, decoder=False)),
        },
        fixed={
            **FIXED,
            "encoder_attention_type": ("local", "tokens that stand for blocks of others are not supported"),
        },
        ignored=(*OF_CONFIG, "global_block_size"),
    ),
)
