"""EuroBERT (Boizard et al., 2025): ``EuroBertConfig``, ``EuroBertModel`` and its heads: Llama without the causal mask."""

from __future__ import annotations

from zoo.families.common import fields as f
from zoo.families.common.family import Family, HeadClass
from zoo.families.common.heads import BODY, Labels
from zoo.families.common.llama_like import LlamaFields, llama_tensors
from zoo.families.common.tensors import affine, modules

_FIELDS = LlamaFields(
    vocab_size=128256, hidden_size=768, intermediate_size=3072, layers=12, heads=12, context=8192, eps=1e-5
)
_MLP_BIAS = f.Bool("mlp_bias", default=False)


_NAMES = ("classifier_pooling", "clf_pooling")
"""The present name of the field, and its name in the first release."""
_POOLING = f.Kinds(
    f.Choice(_NAMES[0], {word: word for word in ("late", "mean", "bos")}, "late", also=_NAMES[1:]),
    {
        "late": {"pooling": "mean", "transform": "tokens"},
        "mean": {"pooling": "mean", "transform": "vector"},
        "bos": {"pooling": "first", "transform": "vector"},
    },
)
"""The pooling, and whether it precedes or follows the dense layer."""

_BODY = _FIELDS.body(
    architecture="encoder",
    attention={"bias": f.Bias("attention_bias", default=False)},
    feed_forward=_FIELDS.feed_forward(bias=_MLP_BIAS),
)
_MASKED = {
    "activation": None,
    "tie_embeddings": f.Bool("tie_word_embeddings", default=False),
    "bias": _MLP_BIAS,
}
_CLASSES = {
    "EuroBertForMaskedLM": HeadClass("masked_language_modeling", _MASKED),
    "EuroBertModel": BODY,
    "EuroBertForSequenceClassification": HeadClass(
        "classification", {"labels": Labels(), "activation": "gelu", "*": _POOLING}
    ),
    "EuroBertForTokenClassification": HeadClass("token_classification", {"labels": Labels()}),
}
_TENSORS = llama_tensors(
    "eurobert",
    stack="encoder",
    outside=("lm_head.", "dense.", "classifier."),
    heads={
        "masked_language_modeling": affine("lm_head", "head.vocabulary"),
        "classification": modules({"dense": "head.dense", "classifier": "head.labels"}),
        "token_classification": affine("classifier", "head.labels"),
    },
    optional=("lm_head.*", "dense.*", "classifier.*"),
)

FAMILIES = (
    Family(
        "eurobert",
        _TENSORS,
        _BODY,
        _CLASSES,
        ignored=(*_NAMES, "hidden_dropout"),  # of one head, and of none
    ),
)
