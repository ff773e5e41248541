"""Heads that many families have alike."""

from __future__ import annotations

from typing import Any

from zoo.configs.config import Config
from zoo.configs.family import Data, HeadClass

BODY = HeadClass("none")
"""The body alone."""

SUMMARY = tuple(
    f"summary_{name}" for name in ("activation", "first_dropout", "proj_to_labels", "type", "use_proj")
)
"""Fields of the heads for multiple choice that configs of GPTs have: no class that is modelled reads them."""


def read_labels(config: Config, default: int = 2) -> int:
    """How many classes a classifier tells apart."""
    names = config.part("id2label")
    labels: int = config.int("num_labels", default=default if names is None else len(names.data))
    return labels


def write_labels(head: Any) -> Data:
    """The classes of a head with ``labels``."""
    return {
        "id2label": {str(i): f"LABEL_{i}" for i in range(head.labels)},
        "label2id": {f"LABEL_{i}": i for i in range(head.labels)},
    }


def language_modeling(*, tied: bool, bias: bool = False) -> HeadClass:
    """Scores of the next token; ``tied`` is what the family does where a config does not say."""

    def read(config: Config) -> Data:
        return {"tie_embeddings": config.bool("tie_word_embeddings", default=tied), "bias": bias}

    def write(head: Any) -> Data:
        return {"tie_word_embeddings": head.tie_embeddings}

    return HeadClass("language_modeling", read, write)


def last_token_classification(config: Config) -> Data:
    """A matrix without bias on the last token, as decoders have it."""
    return {"labels": read_labels(config), "pooling": "last", "bias": False}


def token_classification(config: Config) -> Data:
    """A class for every token."""
    return {"labels": read_labels(config)}


def read_decoder_tokens(config: Config) -> Data:
    """A class for every token, as decoders have it: after the dropout of the classifier, or else of the layers."""
    dropout = config.float("classifier_dropout", "hidden_dropout", default=0.1)
    return {**token_classification(config), "dropout": dropout}


def write_decoder_tokens(head: Any) -> Data:
    """The fields of a classifier of tokens."""
    return {**write_labels(head), "classifier_dropout": head.dropout}


def decoder_classes(
    prefix: str, *, tied: bool, bias: bool = False, without: tuple[str, ...] = ()
) -> dict[str, HeadClass]:
    """The classes that the decoders of transformers have: ``{prefix}ForCausalLM`` and those beside it, but for some.

    ``without`` are those that a family lacks, by what follows the prefix.
    """
    classes = {
        f"{prefix}ForCausalLM": language_modeling(tied=tied, bias=bias),
        f"{prefix}Model": BODY,
        f"{prefix}ForSequenceClassification": HeadClass(
            "classification", last_token_classification, write_labels
        ),
        f"{prefix}ForTokenClassification": HeadClass(
            "token_classification", read_decoder_tokens, write_decoder_tokens
        ),
        f"{prefix}ForQuestionAnswering": HeadClass("question_answering"),
    }
    return {name: head for name, head in classes.items() if name.removeprefix(prefix) not in without}
