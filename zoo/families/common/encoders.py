"""Common parts of BERT and later encoders."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from zoo.families.common import fields as f
from zoo.families.common.attention import per_head
from zoo.families.common.blocks import mlp, multi_head
from zoo.families.common.config import Config
from zoo.families.common.decoders import layer_norm
from zoo.families.common.family import HeadClass
from zoo.families.common.heads import QUESTION_ANSWERING, Labels, token_classes
from zoo.families.common.layers import Layers
from zoo.families.common.llama_like import WHOLE_HEADS
from zoo.families.common.rope import RopeField
from zoo.families.common.template import Data, Field, FieldContext, Template, UnfitError
from zoo.families.common.tensors import Rule, affine, modules, projections, same

NORM = layer_norm("layer_norm_eps", default=1e-12)
CLASSIFIER_DROPOUT = f.Float("classifier_dropout", default=f.Float("hidden_dropout_prob", default=0.1))
"""The dropout of a classifier: its own, or the body's."""

_POOLERS = ("fc_size", "num_attention_heads", "num_fc_layers", "size_per_head", "type")
IGNORED = ("directionality", *(f"pooler_{name}" for name in _POOLERS))
"""Fields of TensorFlow's files."""

FIXED: Mapping[str, tuple[Template, str]] = {
    "position_embedding_type": ("absolute", "other kinds existed only in early releases"),
    "is_decoder": (False, "it is a decoder then"),
    "add_cross_attention": (False, "it is a decoder then"),
}


class TokenTypes(f.Int):
    """The number of token types, one or more."""

    def read(self, config: Config) -> int:
        types: int = super().read(config)
        if types < 1:
            config.refuse(
                "type_vocab_size", "must be 1 or more, as the reference adds a type embedding to every token"
            )
        return types

    def write(self, value: int, context: FieldContext) -> Data:
        if not value:
            raise UnfitError("embedding.token_types 0: it has one at least")
        return super().write(value, context)


@dataclass(frozen=True)
class BertFields:
    """The fields of a config with BERT's names, with a family's defaults."""

    vocab_size: int = 30522
    d_model: int = 768
    heads: int = 12
    hidden: int = 3072
    depth: int = 12
    activation: str = "gelu"
    dropout: float = 0.1
    attention_dropout: float | None = None
    """The dropout of attention, where it is another."""

    def body(
        self,
        *,
        kind: str = "post_norm",
        norm: Template = NORM,
        feed_forward: Template = None,
        block: Template = None,
        attention: Template = None,
        layers: type[Layers] = Layers,
        **embedding: Template,
    ) -> dict[str, Template]:
        """The template of an encoder; ``feed_forward``, ``block``, ``attention`` and ``embedding`` are further keys of these parts."""
        rate = f.Float("hidden_dropout_prob", default=self.dropout)
        attention_rate = self.dropout if self.attention_dropout is None else self.attention_dropout
        return {
            "architecture": "encoder",
            "vocab_size": f.Int("vocab_size", default=self.vocab_size),
            "d_model": f.Int("hidden_size", default=self.d_model),
            "context_length": f.Rows("max_position_embeddings", default=512),
            "position": {"kind": "learned"},
            "embedding": {
                "token_types": TokenTypes("type_vocab_size", default=2),
                "norm": norm,
                "dropout": rate,
                **embedding,
            },
            "encoder": layers(
                f.Depth("num_hidden_layers", default=self.depth),
                {
                    "kind": kind,
                    "norm": norm,
                    "attention": multi_head(
                        f.Int("num_attention_heads", default=self.heads),
                        dropout=f.Float("attention_probs_dropout_prob", default=attention_rate),
                        **attention or {},
                    ),
                    "feed_forward": mlp(
                        f.Int("intermediate_size", default=self.hidden),
                        f.Activation("hidden_act", self.activation),
                        **feed_forward or {},
                    ),
                    "dropout": rate,
                    **(block or {}),
                },
            ),
            "initialization": f.normal(),
        }

    def rotary_body(self, theta: float, *, context: int, **parts: Any) -> dict[str, Template]:
        """The template of an encoder whose heads are rotated; ``parts`` are as for :meth:`body`."""
        body = self.body(**parts)
        length = f.ContextLength("max_position_embeddings", default=context)
        width = per_head(body["d_model"], f.Int("num_attention_heads", default=self.heads))
        position = RopeField(width, length, theta=theta, whole=WHOLE_HEADS)
        return {**body, "context_length": length, "position": position}


# ------------------------------------------------------------------------------------------------------------ heads


def pooler(weight: str = "pooler.dense.weight") -> HeadClass:
    """The body with its pooler, unless the checkpoint lacks its ``weight``: sentence encoders often drop it."""
    stored = f.Derived(lambda config: {"kind": "none"} if config.lacks(weight) else {})
    return HeadClass("pooler", {"*": stored})


def masked(activation: Template, norm: Template = NORM, **more: Template) -> HeadClass:
    """Scores of the masked token, after a transform with an activation and a norm."""
    tied = f.Bool("tie_word_embeddings", default=True)
    return HeadClass(
        "masked_language_modeling", {"activation": activation, "norm": norm, "tie_embeddings": tied, **more}
    )


def classification(activation: Template, dropout: Field = CLASSIFIER_DROPOUT) -> HeadClass:
    """The first token through a dense layer of the body's width, then the classifier."""
    return HeadClass("classification", {"labels": Labels(), "activation": activation, "dropout": dropout})


def classifiers(prefix: str, activation: str, dropout: Field = CLASSIFIER_DROPOUT) -> dict[str, HeadClass]:
    """The classes that classify sequences and tokens, and that answer questions."""
    return {
        f"{prefix}ForSequenceClassification": classification(activation, dropout),
        f"{prefix}ForTokenClassification": token_classes(dropout),
        f"{prefix}ForQuestionAnswering": QUESTION_ANSWERING,
    }


# ---------------------------------------------------------------------------------------------------------- tensors

EMBEDDINGS = (
    *modules({"word_embeddings": "token", "token_type_embeddings": "token_type", "LayerNorm": "norm"},
             "embeddings.", "embedding."),
    same("embeddings.position_embeddings.weight", "embedding.position.table.weight"),
)  # fmt: skip
_LAYER = {
    **projections("attention.self.", "query key value"),
    "attention.output.dense": "attention.output",
    "attention.output.LayerNorm": "attention_norm",
    "intermediate.dense": "feed_forward.up",
    "output.dense": "feed_forward.down",
    "output.LayerNorm": "feed_forward_norm",
}
BERT_RULES = (*EMBEDDINGS, *modules(_LAYER, "encoder.layer.{layer}.", "encoder.blocks.{layer}."))
"""The encoders that have BERT's names."""

RENAMED = {"LayerNorm.gamma": "LayerNorm.weight", "LayerNorm.beta": "LayerNorm.bias"}
UNUSED = ("embeddings.position_ids", "embeddings.token_type_ids")

CLASSIFIER_RULES = {
    "token_classification": affine("classifier", "head.labels"),
    "question_answering": affine("qa_outputs", "head.span"),
}


def masked_rules(dense: str, norm: str, decoder: str, *copies: str) -> tuple[Rule, ...]:
    """The head of masked language modeling; ``copies`` are further names of the bias of scores."""
    return (
        *modules({dense: "head.dense", norm: "head.norm"}),
        same(f"{decoder}.weight", "head.vocabulary.weight"),
        same(f"{decoder}.bias", "head.vocabulary.bias", copies=copies),
    )


ROBERTA_OUTSIDE = ("lm_head.", "classifier.", "qa_outputs.")
ROBERTA_OPTIONAL = ("pooler.*", *(f"{prefix}*" for prefix in ROBERTA_OUTSIDE))
ROBERTA_HEADS = {
    "pooler": affine("pooler.dense", "head.dense"),
    "masked_language_modeling": masked_rules(
        "lm_head.dense", "lm_head.layer_norm", "lm_head.decoder", "lm_head.bias"
    ),
    "classification": modules({"classifier.dense": "head.dense", "classifier.out_proj": "head.labels"}),
    **CLASSIFIER_RULES,
}
"""The heads with RoBERTa's names."""
