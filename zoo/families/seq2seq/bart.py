"""BART (Lewis et al., 2019), PLBart (Ahmad et al., 2021), Blenderbot (Roller et al., 2020), mBART (Liu et al.,
2020) and MVP without prompts (Tang et al., 2022)."""

from __future__ import annotations

from zoo.families.common import fields as f
from zoo.families.common.family import HeadClass
from zoo.families.common.heads import BODY, QUESTION_ANSWERING
from zoo.families.common.seq2seq import (
    CONDITIONAL_GENERATION,
    BartFields,
    StackFields,
    end_of_sequence_classification,
)

_LEARNED = {"kind": "learned", "offset": 2}


def _classes(prefix: str, *, labels: int) -> dict[str, HeadClass]:
    """The classes; ``labels`` is the default number of labels of the classifier."""
    return {
        f"{prefix}ForConditionalGeneration": CONDITIONAL_GENERATION,
        f"{prefix}Model": BODY,
        f"{prefix}ForSequenceClassification": end_of_sequence_classification(labels),
        f"{prefix}ForQuestionAnswering": QUESTION_ANSWERING,
    }


_POST_NORM, _PRE_NORM = StackFields("post_norm"), StackFields("pre_norm")

FAMILIES = (
    BartFields(_POST_NORM, _LEARNED, embedding_norm=True).family("bart", _classes("Bart", labels=3)),
    BartFields(
        StackFields("post_norm", layers=6, heads=12, hidden=3072, attention_dropout=0.1),
        _LEARNED,
        embedding_norm=True,
        vocab_size=f.Int("vocab_size", default=50005),
        d_model=768,
        scaled=True,
    ).family(
        "plbart",
        {name: head for name, head in _classes("PLBart", labels=2).items() if not name.endswith("Answering")},
    ),
    BartFields(
        StackFields("pre_norm", layers=2, heads=32, hidden=10240),
        {"kind": "learned"},
        vocab_size=f.Int("vocab_size", default=8008),
        d_model=2560,
        context=128,
        decoder_depth=24,
    ).family(
        "blenderbot",
        {"BlenderbotForConditionalGeneration": CONDITIONAL_GENERATION, "BlenderbotModel": BODY},
    ),
    BartFields(_PRE_NORM, _LEARNED, embedding_norm=True).family("mbart", _classes("MBart", labels=2)),
    BartFields(
        _POST_NORM, _LEARNED, embedding_norm=True, vocab_size=f.Int("vocab_size", default=50267)
    ).family(
        "mvp",
        _classes("Mvp", labels=2),
        fixed={"use_prompt": (False, "prompts inside attention are not supported")},
        training=("prompt_length", "prompt_mid_dim"),
    ),
)
