"""DPR (Karpukhin et al., 2020): ``DPRConfig``, ``DPRQuestionEncoder``, ``DPRContextEncoder`` and ``DPRReader``.

BERT without its pooler, three times: a vector of a question, a vector of a passage, and an answer in a passage with the passage's
relevance.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from specs.model.model import Model
from zoo.families.common.encoders import BERT_RULES, FIXED, IGNORED, BertFields
from zoo.families.common.family import Family, HeadClass
from zoo.families.common.tensors import Rule, Tensors, affine

_QUESTION, _PASSAGE, _ANSWER = (
    "question_encoder.bert_model.",
    "ctx_encoder.bert_model.",
    "span_predictor.encoder.bert_model.",
)
_QUERY = "query_embedding"


def _prefix(spec: Model) -> str:
    """Return the prefix of the class that a spec is."""
    if spec.head.kind == "question_answering":
        return _ANSWER
    return _QUESTION if spec.head.vector_output == _QUERY else _PASSAGE


def _is(prefix: str) -> Callable[[Model], bool]:
    return lambda spec: _prefix(spec) == prefix


_RULES: tuple[Rule, ...] = tuple(
    replace(rule, stored=prefix + rule.stored, where=_is(prefix))
    for prefix in (_QUESTION, _PASSAGE, _ANSWER)
    for rule in BERT_RULES
)

FAMILIES = (
    Family(
        "dpr",
        Tensors(
            "dpr",
            _RULES,
            heads={
                "question_answering": (
                    *affine("span_predictor.qa_outputs", "head.span"),
                    *affine("span_predictor.qa_classifier", "head.relevance"),
                )
            },
            unused=("*bert_model.pooler.*", "*embeddings.position_ids"),  # of early releases
        ),
        BertFields().body(),
        {
            "DPRQuestionEncoder": HeadClass("pooled", {"output": _QUERY}),
            "DPRContextEncoder": HeadClass("pooled"),
            "DPRReader": HeadClass("question_answering", {"relevance": True}),
        },
        fixed={**FIXED, "projection_dim": (0, "a projection with a bias after pooling is not supported")},
        ignored=IGNORED,
    ),
)
