"""Common parts of BART and later encoder-decoders."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from zoo.families.common import fields as f
from zoo.families.common.blocks import mlp, multi_head
from zoo.families.common.family import Family, HeadClass
from zoo.families.common.heads import Labels
from zoo.families.common.layers import Layers, LayerVariation
from zoo.families.common.template import Data, Template
from zoo.families.common.tensors import Rule, Tensors, modules, projections, same

NORM: Data = {"kind": "layer_norm", "eps": 1e-5}
"""The norm, for which none of their configs has a field."""

SINUSOIDAL: Data = {"kind": "sinusoidal", "layout": "half_split", "table": True}

_UNUSED = ("add_bias_logits", "classif_dropout", "do_blenderbot_90_layernorm", "extra_pos_embeddings",
           "force_bos_token_to_be_generated", "output_past", "save_step", "_num_labels")  # fmt: skip
"""Fields of old configs that no class reads."""

LAYERDROP = ("encoder_layerdrop", "decoder_layerdrop")
"""Fields that drop layers during training."""

CONDITIONAL_GENERATION = HeadClass("language_modeling", {"tie_embeddings": True, "bias": "fixed"})
"""Scores by the shared table, plus an untrained vector."""


_VOCABULARY = f.Int("vocab_size", default=50265)

Mixed = Callable[[str, Data], tuple[Template, LayerVariation]]
"""Of a stack, by its name, and its ordinary feed-forward: the mixture of experts, and which layers have the ordinary one."""


@dataclass(frozen=True)
class StackFields:
    """The fields of an encoder or a decoder of a config, which begin with that word, with a family's defaults."""

    kind: str
    layers: int = 12
    heads: int = 16
    hidden: int = 4096
    dropout: float = 0.1
    bias: Template = True
    activation: str = "gelu"
    attention_dropout: float = 0.0
    mixed: Mixed | None = None

    def stack(self, side: str, **more: Template) -> Layers:
        """The template of the encoder or the decoder; ``more`` are keys of the stack."""
        general = side == "encoder"  # whose fields also have general names
        dense: Data = mlp(
            f.Int(f"{side}_ffn_dim", default=self.hidden),
            f.Activation("activation_function", self.activation),
            dropout=f.Float("activation_dropout", default=0.0),
        )
        feed_forward, *varies = (dense,) if self.mixed is None else self.mixed(side, dense)
        return Layers(
            f.Depth(*[f"{side}_layers", *["num_hidden_layers"] * general], default=self.layers),
            {
                "kind": self.kind,
                "norm": NORM,
                "attention": multi_head(
                    f.Int(
                        *[f"{side}_attention_heads", *["num_attention_heads"] * general], default=self.heads
                    ),
                    dropout=f.Float("attention_dropout", default=self.attention_dropout),
                    bias=self.bias,
                ),
                "feed_forward": feed_forward,
                "dropout": f.Float("dropout", default=self.dropout),
            },
            varies,
            **more,
        )


@dataclass(frozen=True)
class BartFields:
    """The fields of a config with BART's names, with a family's defaults: BART, mBART, Marian, Pegasus, M2M100 or NLLB-MoE."""

    layers: StackFields
    position: Data
    embedding_norm: bool = False
    vocab_size: f.Int = _VOCABULARY
    d_model: int = 1024
    context: int = 1024
    scaled: bool = False
    """Whether the embedding is scaled."""
    decoder_depth: int | None = None
    """The depth of the decoder, if it differs from the encoder's."""

    def body(self) -> dict[str, Template]:
        """The template of the model."""
        depth = self.layers.layers if self.decoder_depth is None else self.decoder_depth
        return {
            "architecture": "encoder-decoder",
            "*": f.Stated(tie_word_embeddings=True, is_encoder_decoder=True),
            "vocab_size": self.vocab_size,
            "d_model": f.Int("d_model", "hidden_size", default=self.d_model),
            "context_length": f.ContextLength(
                "max_position_embeddings", default=self.context, unlimited=1024
            ),
            "position": self.position,
            "embedding": {
                "scale": f.When(f.Bool("scale_embedding", default=self.scaled), "sqrt_d_model"),
                "norm": NORM if self.embedding_norm else None,
                "dropout": f.Float("dropout", default=0.1),
            },
            "encoder": self.layers.stack("encoder"),
            "decoder": replace(self.layers, layers=depth).stack("decoder"),
            "initialization": f.normal("init_std"),
        }

    def family(
        self,
        model_type: str,
        classes: dict[str, HeadClass],
        *,
        fixed: dict[str, tuple[Any, str]] | None = None,
        tensors: Tensors | None = None,
        training: tuple[str, ...] = (),
    ) -> Family:
        """The family of these configs; ``training`` are fields that only change training."""
        before = self.layers.kind == "pre_norm"
        constant = {
            "tie_word_embeddings": (True, "encoder, decoder and head share one table"),
            "is_decoder": (False, "it is the decoder alone"),
            "normalize_before": (before, "norms stand where all models of the family have them"),
            "normalize_embedding": (
                self.embedding_norm,
                "the embedding is normalised as in all models of the family",
            ),
            "add_final_layer_norm": (before, "the stacks end as in all models of the family"),
            "static_position_embeddings": (
                self.position["kind"] != "learned",
                "positions are those of all models of the family",
            ),
        }
        ignored = ("classifier_dropout", *LAYERDROP, *_UNUSED, *training)
        fixed = {**constant, **(fixed or {})}
        return Family(model_type, tensors or BART, self.body(), classes, fixed=fixed, ignored=ignored)


def end_of_sequence_classification(labels: int) -> HeadClass:
    """Classes of a sequence, scored at its end; ``labels`` is their default number.

    The decoder reads the encoder's input shifted to the right: where the encoder has the end of sequence, the decoder has
    its last token.
    """
    dropout = f.Float("classifier_dropout", default=0.0)
    return HeadClass(
        "classification",
        {"labels": Labels(labels), "pooling": "last", "activation": "tanh", "dropout": dropout},
    )


# ---------------------------------------------------------------------------------------------------------- tensors


def stack_rules(
    name: str,
    cross: str = "encoder_attn",
    feed_forward: str = "",
    feed_forward_norm: str = "final_layer_norm",
) -> tuple[Rule, ...]:
    """Return the rules for the layers of an encoder or a decoder, and for the parts before and after them.

    The names in a layer are those of cross-attention, of the module of the feed-forward's layers, and of its norm.
    """
    layer = {
        "self_attn_layer_norm": "attention_norm",
        **projections("self_attn."),
        f"{cross}_layer_norm": "cross_attention_norm",
        **projections(f"{cross}.", ours="cross_attention"),
        feed_forward_norm: "feed_forward_norm",
        f"{feed_forward}fc1": "feed_forward.up",
        f"{feed_forward}fc2": "feed_forward.down",
    }
    around = {
        f"{name}.layernorm_embedding": f"{name}_embedding.norm",
        f"{name}.layer_norm": f"{name}.final_norm",
    }
    return (
        same(f"{name}.embed_positions.weight", f"{name}_embedding.position.table.weight"),
        *modules(layer, f"{name}.layers.{{layer}}.", f"{name}.blocks.{{layer}}."),
        *modules(around),
    )


SHARED = ("encoder.embed_tokens.weight",)
"""Another name of the table that encoder and decoder share."""

CLASSIFICATION = modules(
    {"classification_head.dense": "head.dense", "classification_head.out_proj": "head.labels"}
)


def bart_tensors(name: str, *rules: Rule) -> Tensors:
    """The tensors of a family; ``rules`` are the rules of its layers."""
    return Tensors(
        name,
        (
            same("shared.weight", "encoder_embedding.token.weight", also=SHARED),
            same("decoder.embed_tokens.weight", "decoder_embedding.token.weight"),
            *rules,
        ),
        prefix="model.",
        outside=("lm_head.", "final_logits_bias", "classification_head.", "qa_outputs."),
        heads={
            "language_modeling": (
                same("lm_head.weight", "head.vocabulary.weight"),
                same("final_logits_bias", "head.bias"),
            ),
            "classification": CLASSIFICATION,
            "question_answering": modules({"qa_outputs": "head.span"}),
        },
        optional=("lm_head.weight", "final_logits_bias", "classification_head.*", "qa_outputs.*"),
        unused=("encoder.version", "decoder.version", "*.embed_positions.weights"),
    )


BART = bart_tensors("bart", *stack_rules("encoder"), *stack_rules("decoder"))
