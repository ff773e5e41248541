"""Heads that many families share."""

from __future__ import annotations

from typing import Any

from zoo.families.common import fields as f
from zoo.families.common.config import Config
from zoo.families.common.family import HeadClass
from zoo.families.common.template import Data, Field, FieldContext, Template

BODY = HeadClass("none")
"""The body alone."""

SUMMARY = tuple(
    f"summary_{name}" for name in ("activation", "first_dropout", "proj_to_labels", "type", "use_proj")
)
"""Fields of multiple-choice heads in GPT configs: no supported class reads them."""


class Labels(Field):
    """The number of classes of a classifier."""

    def __init__(self, default: int = 2) -> None:
        self.default = default

    def read(self, config: Config) -> int:
        names = config.part("id2label")
        default = self.default if names is None else len(names.data)
        labels: int = config.int("num_labels", default=default)
        return labels

    def write(self, value: int, context: FieldContext) -> Data:
        names = {str(i): f"LABEL_{i}" for i in range(value)}
        return {"id2label": names, "label2id": {name: int(i) for i, name in names.items()}}


def language_modeling(*, tied: bool, **more: Template) -> HeadClass:
    """Scores of the next token; ``tied`` is the family's default."""
    return HeadClass(
        "language_modeling", {"tie_embeddings": f.Bool("tie_word_embeddings", default=tied), **more}
    )


def token_classes(dropout: Field, **more: Any) -> HeadClass:
    """A class for every token."""
    return HeadClass("token_classification", {"labels": Labels(), "dropout": dropout, **more})


QUESTION_ANSWERING = HeadClass("question_answering")
LAST_TOKEN = HeadClass("classification", {"labels": Labels(), "pooling": "last", "bias": False})
"""A matrix without bias on the last token, as in decoders."""

TOKENS = token_classes(f.Float("classifier_dropout", default=f.Float("hidden_dropout", default=0.1)))
"""A class for every token, as in decoders: after the dropout of the classifier, or by default of the layers."""


def decoder_classes(
    prefix: str,
    *,
    tied: bool = False,
    bias: bool = False,
    without: tuple[str, ...] = (),
    **scores: Template,
) -> dict[str, HeadClass]:
    """The classes of a decoder in transformers: ``{prefix}ForCausalLM`` and its siblings.

    ``without`` are the suffixes of the classes that a family lacks; ``scores`` are further keys of the language modeling
    head.
    """
    classes = {
        "ForCausalLM": language_modeling(tied=tied, bias=bias, **scores),
        "Model": BODY,
        "ForSequenceClassification": LAST_TOKEN,
        "ForTokenClassification": TOKENS,
        "ForQuestionAnswering": QUESTION_ANSWERING,
    }
    return {f"{prefix}{name}": head for name, head in classes.items() if name not in without}
