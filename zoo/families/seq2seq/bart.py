"""BART (Lewis et al., 2019) and mBART (Liu et al., 2020): ``BartConfig``, ``MBartConfig`` and their models."""

from __future__ import annotations

from zoo.families.common.family import HeadClass
from zoo.families.common.heads import BODY, QUESTION_ANSWERING
from zoo.families.common.seq2seq import CONDITIONAL_GENERATION, bart_like, end_of_sequence_classification

_LEARNED = {"kind": "learned", "offset": 2}


def _classes(prefix: str, *, labels: int) -> dict[str, HeadClass]:
    """The classes; ``labels`` is the default number of labels of the classifier."""
    return {
        f"{prefix}ForConditionalGeneration": CONDITIONAL_GENERATION,
        f"{prefix}Model": BODY,
        f"{prefix}ForSequenceClassification": end_of_sequence_classification(labels),
        f"{prefix}ForQuestionAnswering": QUESTION_ANSWERING,
    }


FAMILIES = (
    bart_like("bart", _classes("Bart", labels=3), kind="post_norm", position=_LEARNED, embedding_norm=True),
    bart_like("mbart", _classes("MBart", labels=2), kind="pre_norm", position=_LEARNED, embedding_norm=True),
)
