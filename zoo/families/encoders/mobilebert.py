"""MobileBERT (Sun et al., 2020): ``MobileBertConfig``, ``MobileBertModel`` and its heads.

BERT whose branches are narrower than the residual stream, with weights and biases in place of norms.
"""

from __future__ import annotations

from dataclasses import replace

from zoo.families.common import fields as f
from zoo.families.common.attention import per_head
from zoo.families.common.blocks import multi_head
from zoo.families.common.encoders import (
    CLASSIFIER_DROPOUT,
    EMBEDDINGS,
    FIXED,
    IGNORED,
    NORM,
    TokenTypes,
    masked,
)
from zoo.families.common.family import Family, HeadClass
from zoo.families.common.heads import QUESTION_ANSWERING, Labels, token_classes
from zoo.families.common.layers import Layers
from zoo.families.common.tensors import Rule, affine, modules, projections
from zoo.families.common.transforms import Transposed
from zoo.families.encoders.bert import TENSORS

_D_MODEL = f.Int("hidden_size", default=512)
_WIDTH = f.Int("intra_bottleneck_size", default=128)
_HEADS = f.Int("num_attention_heads", default=4)
_ACTIVATION = f.Activation("hidden_act", "relu")
_DROPOUT = f.Float("hidden_dropout_prob", default=0.0)
_AFFINE = {"kind": "affine"}
_POOLED = f.Choice("classifier_activation", {True: "tanh", False: None}, True)
_BODY = {
    "architecture": "encoder",
    "vocab_size": f.Int("vocab_size", default=30522),
    "d_model": _D_MODEL,
    "context_length": f.Rows("max_position_embeddings", default=512),
    "position": {"kind": "learned"},
    "embedding": {
        "token_types": TokenTypes("type_vocab_size", default=2),
        "width": f.TableWidth("embedding_size", default=128),
        "trigrams": True,
        "projection": {"bias": True, "place": "first"},
        "norm": _AFFINE,
        "dropout": _DROPOUT,
    },
    "encoder": Layers(
        f.Depth("num_hidden_layers", default=24),
        {
            "kind": "bottleneck",
            "norm": _AFFINE,
            "width": _WIDTH,
            "feed_forwards": f.Int("num_feedforward_networks", default=4),
            "attention": multi_head(
                _HEADS,
                head_dim=f.Derived(lambda config: per_head(_WIDTH, _HEADS).read(config)),
                dropout=f.Float("attention_probs_dropout_prob", default=0.1),
            ),
            "feed_forward": {
                "kind": "mlp",
                "hidden": f.Int("intermediate_size", default=512),
                "activation": _ACTIVATION,
            },
            "dropout": _DROPOUT,
        },
    ),
    "initialization": f.normal(),
}

_LAYER = {
    "bottleneck.input.dense": "input.linear",
    "bottleneck.input.LayerNorm": "input.norm",
    "bottleneck.attention.dense": "shared.linear",
    "bottleneck.attention.LayerNorm": "shared.norm",
    **projections("attention.self.", "query key value"),
    "attention.output.dense": "attention.output",
    "attention.output.LayerNorm": "attention_norm",
    "ffn.{index}.intermediate.dense": "earlier.{index}.feed_forward.up",
    "ffn.{index}.output.dense": "earlier.{index}.feed_forward.down",
    "ffn.{index}.output.LayerNorm": "earlier.{index}.norm",
    "intermediate.dense": "feed_forward.up",
    "output.dense": "feed_forward.down",
    "output.LayerNorm": "feed_forward_norm",
    "output.bottleneck.dense": "output",
    "output.bottleneck.LayerNorm": "output_norm",
}
_TENSORS = replace(
    TENSORS,
    name="mobilebert",
    rules=(
        *EMBEDDINGS,
        *affine("embeddings.embedding_transformation", "embedding.projection"),
        *modules(_LAYER, "encoder.layer.{layer}.", "encoder.blocks.{layer}."),
    ),
    prefix="mobilebert.",
    heads={
        **TENSORS.heads,
        "pooled": affine("pooler.dense", "head.dense"),
        "masked_language_modeling": (
            *TENSORS.heads["masked_language_modeling"],
            Rule("cls.predictions.dense.weight", ("head.rest.weight",), Transposed()),
        ),
    },
    bare_heads=("pooled",),
    renamed={},
)
_MASKED = masked(_ACTIVATION, NORM, dense_width=f.Derived(_D_MODEL.read), tie_embeddings=True)

FAMILIES = (
    Family(
        "mobilebert",
        _TENSORS,
        _BODY,
        {
            "MobileBertModel": HeadClass("pooled", {"activation": _POOLED}),
            "MobileBertForMaskedLM": _MASKED,
            "MobileBertForPreTraining": _MASKED,
            "MobileBertForSequenceClassification": HeadClass(
                "classification", {"labels": Labels(), "activation": _POOLED, "dropout": CLASSIFIER_DROPOUT}
            ),
            "MobileBertForTokenClassification": token_classes(CLASSIFIER_DROPOUT),
            "MobileBertForQuestionAnswering": QUESTION_ANSWERING,
        },
        fixed={
            **FIXED,
            "trigram_input": (True, "the embedding reads the tokens beside each token"),
            "use_bottleneck": (True, "layers are narrower than the residual stream"),
            "use_bottleneck_attention": (False, "values are as wide as the residual stream"),
            "key_query_shared_bottleneck": (True, "queries and keys read a matrix of their own"),
            "normalization_type": ("no_norm", "other norms have an eps that no field states"),
            "tie_word_embeddings": (True, "scores use the table of tokens"),
            "true_hidden_size": (_WIDTH, "the width of the layers is intra_bottleneck_size"),
        },
        ignored=("classifier_activation", "classifier_dropout", "layer_norm_eps", *IGNORED),  # of some heads
    ),
)
