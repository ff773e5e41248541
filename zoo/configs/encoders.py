"""What the configs of BERT and the encoders after it have in common."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from specs.base import Component
from specs.model import Model
from specs.position import Learned
from zoo.configs.activations import read_activation, write_activation
from zoo.configs.config import Config
from zoo.configs.decoders import attention_of, eps_of, mlp_of, only_block, stack_of, std_of, tokens_of
from zoo.configs.family import Data, HeadClass, UnfitError
from zoo.configs.heads import read_labels, token_classification, write_labels

Dropout = Callable[[Config], float]
"""How a head's dropout is read."""


def read_bert(
    config: Config,
    *,
    vocab_size: int = 30522,
    d_model: int = 768,
    heads: int = 12,
    hidden: int = 3072,
    activation: str = "gelu",
    dropout: float = 0.1,
) -> Data:
    """The body of a config with BERT's fields, whose defaults the family has its own; positions are not offset."""
    norm = read_norm(config)
    rate = config.float("hidden_dropout_prob", default=dropout)
    types = config.int("type_vocab_size", default=2)
    if types < 1:
        config.refuse("type_vocab_size", "must be 1 or more: the reference adds one of them to every token")
    config.must("position_embedding_type", "absolute", "other kinds are of old releases")
    config.ignore("directionality")  # of TensorFlow's files, as the next are
    config.ignore(
        *(
            f"pooler_{name}"
            for name in ("fc_size", "num_attention_heads", "num_fc_layers", "size_per_head", "type")
        )
    )
    config.must("is_decoder", False, "it is a decoder then")
    config.must("add_cross_attention", False, "it is a decoder then")
    return {
        "architecture": "encoder",
        "vocab_size": config.int("vocab_size", default=vocab_size),
        "d_model": config.int("hidden_size", default=d_model),
        "context_length": config.int("max_position_embeddings", default=512),
        "position": {"kind": "learned"},
        "embedding": {
            "token_types": types,
            "norm": norm,
            "dropout": rate,
        },
        "encoder": {
            "layers": config.layers("num_hidden_layers", default=12),
            "block": {
                "kind": "post_norm",
                "norm": norm,
                "attention": {
                    "kind": "multi_head",
                    "heads": config.int("num_attention_heads", default=heads),
                    "dropout": config.float("attention_probs_dropout_prob", default=dropout),
                },
                "feed_forward": {
                    "kind": "mlp",
                    "hidden": config.int("intermediate_size", default=hidden),
                    "activation": read_activation(config, "hidden_act", activation),
                },
                "dropout": rate,
            },
        },
        "initialization": {"kind": "normal", "std": config.float("initializer_range", default=0.02)},
    }


def read_norm(config: Config) -> Data:
    """The norm of a config with BERT's fields."""
    return {"kind": "layer_norm", "eps": config.float("layer_norm_eps", default=1e-12)}


def write_bert(model: Model) -> Data:
    """BERT's fields.  Raises :class:`UnfitError` for a model that is too unlike."""
    block = only_block(model)
    attention, feed_forward = attention_of(block), mlp_of(block)
    if not tokens_of(model).token_types:
        raise UnfitError("embedding.token_types 0: it has one at least")
    return {
        "vocab_size": model.vocab_size,
        "hidden_size": model.d_model,
        "num_hidden_layers": stack_of(model).depth,
        "num_attention_heads": attention.heads,
        "intermediate_size": feed_forward.hidden,
        "hidden_act": write_activation(feed_forward.activation),
        "hidden_dropout_prob": block.dropout,
        "attention_probs_dropout_prob": attention.dropout,
        "max_position_embeddings": rows_of(model),
        "type_vocab_size": tokens_of(model).token_types,
        "layer_norm_eps": eps_of(block.norm),
        **std_of(model),
    }


def learned_of(model: Model) -> Learned:
    """The position of a model, which has to be learned."""
    position: Component = model.position_of(stack_of(model))
    if not isinstance(position, Learned):
        raise UnfitError(f"position kind {position.kind}")
    return position


def rows_of(model: Model) -> int:
    """The rows of a table of learned positions."""
    return (model.context_length or 0) + learned_of(model).offset


# ------------------------------------------------------------------------------------------------------------ heads


def pooler(weight: str = "pooler.dense.weight") -> HeadClass:
    """The body with its pooler, or alone where the checkpoint has no ``weight`` of one: sentence encoders often drop it."""

    def read(config: Config) -> Data:
        return {"kind": "none"} if config.lacks(weight) else {}

    return HeadClass("pooler", read)


def masked(read: Callable[[Config], Data]) -> HeadClass:
    """Scores of the masked token; ``read`` gives activation and norm of the transform."""

    def read_all(config: Config) -> Data:
        return {**read(config), "tie_embeddings": config.bool("tie_word_embeddings", default=True)}

    def write(head: Any) -> Data:
        return {"tie_word_embeddings": head.tie_embeddings}

    return HeadClass("masked_language_modeling", read_all, write)


def classifier_dropout(config: Config) -> float:
    """The dropout of a classifier in a config with BERT's fields: its own, or the body's."""
    hidden = config.float("hidden_dropout_prob", default=0.1)
    rate: float = config.float("classifier_dropout", default=hidden)
    return rate


def classification(activation: str, dropout: Dropout = classifier_dropout) -> HeadClass:
    """The first token through a dense layer of the body's width, then the classifier."""

    def read(config: Config) -> Data:
        return {"labels": read_labels(config), "activation": activation, "dropout": dropout(config)}

    return HeadClass("classification", read, write_labels)


def of_tokens(dropout: Dropout = classifier_dropout) -> HeadClass:
    """A class for every token."""

    def read(config: Config) -> Data:
        return {**token_classification(config), "dropout": dropout(config)}

    return HeadClass("token_classification", read, write_labels)
