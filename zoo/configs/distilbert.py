"""DistilBERT (Sanh et al., 2019): ``DistilBertConfig``."""

from __future__ import annotations

from specs.model import Model
from zoo.configs.activations import read_activation, write_activation
from zoo.configs.config import Config
from zoo.configs.decoders import attention_of, mlp_of, only_block, stack_of, std_of
from zoo.configs.encoders import classification, masked, of_tokens, rows_of
from zoo.configs.family import ConfigFamily, Data, HeadClass

_NORM = {"kind": "layer_norm", "eps": 1e-12}


def _read(config: Config, class_name: str) -> Data:
    dropout = config.float("dropout", default=0.1)
    config.ignore("qa_dropout", "seq_classif_dropout")  # of some heads
    config.ignore("sinusoidal_pos_embds")  # what the table of positions starts from
    config.ignore("tie_weights_")
    return {
        "architecture": "encoder",
        "vocab_size": config.int("vocab_size", default=30522),
        "d_model": config.int("dim", "hidden_size", default=768),
        "context_length": config.int("max_position_embeddings", default=512),
        "position": {"kind": "learned"},
        "embedding": {"norm": _NORM, "dropout": dropout},
        "encoder": {
            "layers": config.layers("n_layers", "num_hidden_layers", default=6),
            "block": {
                "kind": "post_norm",
                "norm": _NORM,
                "attention": {
                    "kind": "multi_head",
                    "heads": config.int("n_heads", "num_attention_heads", default=12),
                    "dropout": config.float("attention_dropout", default=0.1),
                },
                "feed_forward": {
                    "kind": "mlp",
                    "hidden": config.int("hidden_dim", default=3072),
                    "activation": read_activation(config, "activation", "gelu"),
                },
                "dropout": dropout,
            },
        },
        "initialization": {"kind": "normal", "std": config.float("initializer_range", default=0.02)},
    }


def _write(model: Model) -> Data:
    block = only_block(model)
    attention, feed_forward = attention_of(block), mlp_of(block)
    return {
        "vocab_size": model.vocab_size,
        "dim": model.d_model,
        "n_layers": stack_of(model).depth,
        "n_heads": attention.heads,
        "hidden_dim": feed_forward.hidden,
        "activation": write_activation(feed_forward.activation),
        "dropout": block.dropout,
        "attention_dropout": attention.dropout,
        "max_position_embeddings": rows_of(model),
        **std_of(model),
    }


def _masked(config: Config) -> Data:
    return {"activation": read_activation(config, "activation", "gelu"), "norm": _NORM}


CLASSES = {
    "DistilBertModel": HeadClass("none"),
    "DistilBertForMaskedLM": masked(_masked),
    "DistilBertForSequenceClassification": classification(
        "relu", lambda config: config.float("seq_classif_dropout", default=0.2)
    ),
    "DistilBertForTokenClassification": of_tokens(lambda config: config.float("dropout", default=0.1)),
    "DistilBertForQuestionAnswering": HeadClass(
        "question_answering", lambda config: {"dropout": config.float("qa_dropout", default=0.1)}
    ),
}

FAMILIES = (ConfigFamily("distilbert", _read, _write, CLASSES),)
