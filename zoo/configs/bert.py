"""BERT (Devlin et al., 2018): ``BertConfig``."""

from __future__ import annotations

from typing import Any

from specs.model import Model
from specs.position import Learned
from zoo.configs.activations import read_activation, write_activation
from zoo.configs.config import Config
from zoo.configs.decoders import attention_of, eps_of, mlp_of, only_block, stack_of, std_of, tokens_of
from zoo.configs.family import ConfigFamily, Data, HeadClass, UnfitError
from zoo.configs.heads import read_labels, token_classification, write_labels


def _read(config: Config, class_name: str) -> Data:
    norm = {"kind": "layer_norm", "eps": config.float("layer_norm_eps", default=1e-12)}
    dropout = config.float("hidden_dropout_prob", default=0.1)
    config.must("position_embedding_type", "absolute", "other kinds are of old releases")
    config.must("is_decoder", False, "BERT as a decoder is not modelled")
    config.must("add_cross_attention", False, "BERT as a decoder is not modelled")
    return {
        "architecture": "encoder",
        "vocab_size": config.int("vocab_size", default=30522),
        "d_model": config.int("hidden_size", default=768),
        "context_length": config.int("max_position_embeddings", default=512),
        "position": {"kind": "learned"},
        "embedding": {
            "token_types": config.int("type_vocab_size", default=2),
            "norm": norm,
            "dropout": dropout,
        },
        "encoder": {
            "layers": config.int("num_hidden_layers", default=12),
            "block": {
                "kind": "post_norm",
                "norm": norm,
                "attention": {
                    "kind": "multi_head",
                    "heads": config.int("num_attention_heads", default=12),
                    "dropout": config.float("attention_probs_dropout_prob", default=0.1),
                },
                "feed_forward": {
                    "kind": "mlp",
                    "hidden": config.int("intermediate_size", default=3072),
                    "activation": read_activation(config, "hidden_act", "gelu"),
                },
                "dropout": dropout,
            },
        },
        "initialization": {"kind": "normal", "std": config.float("initializer_range", default=0.02)},
    }


def _write(model: Model) -> Data:
    block = only_block(model)
    attention, feed_forward = attention_of(block), mlp_of(block)
    if not isinstance(model.position_of(stack_of(model)), Learned):
        raise UnfitError(f"position kind {model.position.kind}")
    return {
        "vocab_size": model.vocab_size,
        "hidden_size": model.d_model,
        "num_hidden_layers": stack_of(model).depth,
        "num_attention_heads": attention.heads,
        "intermediate_size": feed_forward.hidden,
        "hidden_act": write_activation(feed_forward.activation),
        "hidden_dropout_prob": block.dropout,
        "attention_probs_dropout_prob": attention.dropout,
        "max_position_embeddings": model.context_length,
        "type_vocab_size": tokens_of(model).token_types,
        "layer_norm_eps": eps_of(block.norm),
        **std_of(model),
    }


def _masked(config: Config) -> Data:
    norm = {"kind": "layer_norm", "eps": config.float("layer_norm_eps", default=1e-12)}
    activation = read_activation(config, "hidden_act", "gelu")
    tied = config.bool("tie_word_embeddings", default=True)
    return {"activation": activation, "norm": norm, "tie_embeddings": tied}


def _write_masked(head: Any) -> Data:
    return {"tie_word_embeddings": head.tie_embeddings}


def _dropout(config: Config) -> Any:
    hidden = config.float("hidden_dropout_prob", default=0.1)
    return config.float("classifier_dropout", default=hidden)


def _classification(config: Config) -> Data:
    return {"labels": read_labels(config), "activation": "tanh", "dropout": _dropout(config)}


def _of_tokens(config: Config) -> Data:
    return {**token_classification(config), "dropout": _dropout(config)}


CLASSES = {
    "BertModel": HeadClass("pooler"),
    "BertForMaskedLM": HeadClass("masked_language_modeling", _masked, _write_masked),
    "BertForPreTraining": HeadClass("masked_language_modeling", _masked, _write_masked),
    "BertForSequenceClassification": HeadClass("classification", _classification, write_labels),
    "BertForTokenClassification": HeadClass("token_classification", _of_tokens, write_labels),
    "BertForQuestionAnswering": HeadClass("question_answering"),
}

FAMILIES = (ConfigFamily("bert", _read, _write, CLASSES),)
