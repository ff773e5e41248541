"""EuroBERT (Boizard et al., 2025): ``EuroBertConfig``, ``EuroBertModel`` and its heads: Llama without the causal mask."""

from __future__ import annotations

from typing import Any

from specs.kinds.sequence_heads import Classification
from zoo.families.common import fields as f
from zoo.families.common.config import Config
from zoo.families.common.family import Family, HeadClass
from zoo.families.common.heads import BODY, Labels
from zoo.families.common.llama_like import LlamaFields, llama_tensors
from zoo.families.common.template import Data, Field, FieldContext, UnfitError
from zoo.families.common.tensors import affine, modules

_FIELDS = LlamaFields(
    vocab_size=128256, hidden_size=768, intermediate_size=3072, layers=12, heads=12, context=8192, eps=1e-5
)
_MLP_BIAS = f.Bool("mlp_bias", default=False)


class _Pooling(Field):
    """The pooling, and whether it precedes or follows the dense layer, under its present name and its name in the first release."""

    component = Classification

    names = ("classifier_pooling", "clf_pooling")
    words = {"late": ("mean", "tokens"), "mean": ("mean", "vector"), "bos": ("first", "vector")}

    def read(self, config: Config) -> Data:
        name = next((name for name in self.names if config.has(name)), self.names[0])
        pooling, transform = config.choice(name, self.words, "late")
        return {"pooling": pooling, "transform": transform}

    def write(self, value: Any, context: FieldContext) -> Data:
        pair = (value.pooling, value.transform)
        word = next((word for word, meaning in self.words.items() if meaning == pair), None)
        if word is None:
            raise UnfitError(f"head.pooling {value.pooling} of {value.transform}")
        return {self.names[0]: word}


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
        "classification", {"labels": Labels(), "activation": "gelu", "*": _Pooling()}
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
        ignored=(*_Pooling.names, "hidden_dropout"),  # of one head, and of none
    ),
)
