"""What the configs of BART and the encoder-decoders after it have in common."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from specs.feed_forward import MLP
from specs.model import Model
from specs.stack import Stack
from zoo.configs.activations import read_activation, write_activation
from zoo.configs.config import Config
from zoo.configs.decoders import attention_of, mlp_of
from zoo.configs.family import Data, HeadClass, UnfitError
from zoo.configs.heads import BODY, read_labels, write_labels

NORM: Data = {"kind": "layer_norm", "eps": 1e-5}
"""The norm that none of their configs has a field for."""

_UNUSED = ("add_bias_logits", "classif_dropout", "do_blenderbot_90_layernorm", "extra_pos_embeddings",
           "force_bos_token_to_be_generated", "output_past", "save_step", "_num_labels")  # fmt: skip
"""Fields of old configs that no class reads."""

_OLD = {
    "normalize_before": "norms stand where all models of the family have them",
    "normalize_embedding": "the embedding is normalised as in all models of the family",
    "add_final_layer_norm": "the stacks end as in all models of the family",
    "static_position_embeddings": "positions are those of all models of the family",
}


@dataclass(frozen=True)
class Sizes:
    """A family's defaults."""

    layers: int = 12
    heads: int = 16
    hidden: int = 4096
    dropout: float = 0.1


def read_stack(config: Config, side: str, sizes: Sizes, *, kind: str, bias: Any = True) -> Data:
    """The encoder or the decoder of a config, whose fields begin with that word."""
    layers, heads = [f"{side}_layers"], [f"{side}_attention_heads"]
    if side == "encoder":  # whose fields go by general names as well
        layers.append("num_hidden_layers")
        heads.append("num_attention_heads")
    config.ignore(f"{side}_layerdrop")  # leaves out layers in training
    return {
        "layers": config.layers(*layers, default=sizes.layers),
        "block": {
            "kind": kind,
            "norm": NORM,
            "attention": {
                "kind": "multi_head",
                "heads": config.int(*heads, default=sizes.heads),
                "bias": bias,
                "dropout": config.float("attention_dropout", default=0.0),
            },
            "feed_forward": {
                "kind": "mlp",
                "hidden": config.int(f"{side}_ffn_dim", default=sizes.hidden),
                "activation": read_activation(config, "activation_function", "gelu"),
                "dropout": config.float("activation_dropout", default=0.0),
            },
            "dropout": config.float("dropout", default=sizes.dropout),
        },
    }


def read_model(config: Config, *, kind: str, position: Data, embedding_norm: bool, vocab_size: int) -> Data:
    """The body of a config of BART, mBART, Marian or Pegasus."""
    config.must("tie_word_embeddings", True, "encoder, decoder and head share one table")
    config.must("is_decoder", False, "it is the decoder alone")
    config.ignore("classifier_dropout", *_UNUSED)
    before = kind == "pre_norm"
    learned = position["kind"] == "learned"
    for (field, because), value in zip(
        _OLD.items(), (before, embedding_norm, before, not learned), strict=True
    ):
        config.must(field, value, because)
    return {
        "architecture": "encoder-decoder",
        "vocab_size": config.int("vocab_size", default=vocab_size),
        "d_model": config.int("d_model", "hidden_size", default=1024),
        "context_length": config.int("max_position_embeddings", default=1024),
        "position": position,
        "embedding": {
            "scale": "sqrt_d_model" if config.bool("scale_embedding", default=False) else None,
            "norm": NORM if embedding_norm else None,
            "dropout": config.float("dropout", default=0.1),
        },
        "encoder": read_stack(config, "encoder", Sizes(), kind=kind),
        "decoder": read_stack(config, "decoder", Sizes(), kind=kind),
        "initialization": {"kind": "normal", "std": config.float("init_std", default=0.02)},
    }


def write_stack(stack: Stack, side: str) -> Data:
    """The fields of an encoder or a decoder."""
    block = stack.layer_blocks()[0]
    return {
        f"{side}_layers": stack.depth,
        f"{side}_attention_heads": attention_of(block).heads,
        f"{side}_ffn_dim": mlp_of(block).hidden,
    }


def write_stacks(model: Model) -> Data:
    """The fields of an encoder and a decoder, and of what both have alike."""
    encoder, decoder = model.encoder, model.decoder
    if encoder is None or decoder is None:
        raise UnfitError(f"architecture {model.architecture}")
    block = decoder.layer_blocks()[0]
    feed_forward: MLP = mlp_of(block)
    std = getattr(model.initialization, "std", None)
    return {
        "d_model": model.d_model,
        **write_stack(encoder, "encoder"),
        **write_stack(decoder, "decoder"),
        "activation_function": write_activation(feed_forward.activation),
        "dropout": block.dropout,
        "attention_dropout": attention_of(block).dropout,
        "activation_dropout": feed_forward.dropout,
        **({} if std is None else {"init_std": std}),
        "is_encoder_decoder": True,
    }


def write_model(model: Model) -> Data:
    """The fields of a config of BART, mBART, Marian or Pegasus."""
    return {
        "vocab_size": model.vocab_size,
        "max_position_embeddings": model.context_length or 1024,
        "scale_embedding": getattr(model.embedding, "scale", None) is not None,
        **write_stacks(model),
        "tie_word_embeddings": True,
    }


def conditional_generation(config: Config) -> Data:
    """Scores by the shared table, plus the vector that no training changes."""
    return {"tie_embeddings": True, "bias": "fixed"}


def end_of_sequence_classification(labels: int) -> HeadClass:
    """Classes for a sequence, by default so many, at its end.

    The decoder is given what the encoder is, shifted to the right: where the encoder has the end of sequence, the
    decoder has its last token.
    """

    def read(config: Config) -> Data:
        dropout = config.float("classifier_dropout", default=0.0)
        count = read_labels(config, default=labels)
        return {"labels": count, "pooling": "last", "activation": "tanh", "dropout": dropout}

    return HeadClass("classification", read, _write_classification)


def _write_classification(head: Any) -> Data:
    return {**write_labels(head), "classifier_dropout": head.dropout}


def classes(prefix: str, *, labels: int) -> dict[str, HeadClass]:
    """The classes of BART and mBART, whose classifiers have so many labels by default."""
    return {
        f"{prefix}ForConditionalGeneration": HeadClass("language_modeling", conditional_generation),
        f"{prefix}Model": BODY,
        f"{prefix}ForSequenceClassification": end_of_sequence_classification(labels),
        f"{prefix}ForQuestionAnswering": HeadClass("question_answering"),
    }
