"""DistilBERT (Sanh et al., 2019): ``DistilBertConfig``, ``DistilBertModel`` and its heads."""

from __future__ import annotations

from zoo.families.common import fields as f
from zoo.families.common.blocks import mlp, multi_head
from zoo.families.common.encoders import CLASSIFIER_RULES, classification, masked
from zoo.families.common.family import Family, HeadClass
from zoo.families.common.heads import BODY, token_classes
from zoo.families.common.layers import Layers
from zoo.families.common.tensors import Tensors, modules, projections, same

_NORM = {"kind": "layer_norm", "eps": 1e-12}
_DROPOUT = f.Float("dropout", default=0.1)
_ACTIVATION = f.Activation("activation", "gelu")
_BODY = {
    "architecture": "encoder",
    "vocab_size": f.Int("vocab_size", default=30522),
    "d_model": f.Int("dim", "hidden_size", default=768),
    "context_length": f.Rows("max_position_embeddings", default=512),
    "position": {"kind": "learned"},
    "embedding": {"norm": _NORM, "dropout": _DROPOUT},
    "encoder": Layers(
        f.Depth("n_layers", "num_hidden_layers", default=6),
        {
            "kind": "post_norm",
            "norm": _NORM,
            "attention": multi_head(
                f.Int("n_heads", "num_attention_heads", default=12),
                dropout=f.Float("attention_dropout", default=0.1),
            ),
            "feed_forward": mlp(f.Int("hidden_dim", default=3072), _ACTIVATION),
            "dropout": _DROPOUT,
        },
    ),
    "initialization": f.normal(),
}

_LAYER = {
    **projections("attention.", "q_lin k_lin v_lin out_lin"),
    "sa_layer_norm": "attention_norm",
    "ffn.lin1": "feed_forward.up",
    "ffn.lin2": "feed_forward.down",
    "output_layer_norm": "feed_forward_norm",
}
_TENSORS = Tensors(
    "distilbert",
    (
        *modules({"word_embeddings": "token", "LayerNorm": "norm"}, "embeddings.", "embedding."),
        same("embeddings.position_embeddings.weight", "embedding.position.table.weight"),
        *modules(_LAYER, "transformer.layer.{layer}.", "encoder.blocks.{layer}."),
    ),
    prefix="distilbert.",
    outside=("vocab_", "pre_classifier.", "classifier.", "qa_outputs."),
    heads={
        "masked_language_modeling": modules(
            {
                "vocab_transform": "head.dense",
                "vocab_layer_norm": "head.norm",
                "vocab_projector": "head.vocabulary",
            }
        ),
        "classification": modules({"pre_classifier": "head.dense", "classifier": "head.labels"}),
        **CLASSIFIER_RULES,
    },
    optional=("vocab_*", "pre_classifier.*", "classifier.*", "qa_outputs.*"),
    unused=("embeddings.position_ids",),
)

FAMILIES = (
    Family(
        "distilbert",
        _TENSORS,
        _BODY,
        {
            "DistilBertModel": BODY,
            "DistilBertForMaskedLM": masked(_ACTIVATION, _NORM),
            "DistilBertForSequenceClassification": classification(
                "relu", f.Float("seq_classif_dropout", default=0.2)
            ),
            "DistilBertForTokenClassification": token_classes(_DROPOUT),
            "DistilBertForQuestionAnswering": HeadClass(
                "question_answering", {"dropout": f.Float("qa_dropout", default=0.1)}
            ),
        },
        # only some heads read the first two; the third is how the table of positions is initialized
        ignored=("qa_dropout", "seq_classif_dropout", "sinusoidal_pos_embds", "tie_weights_"),
    ),
)
