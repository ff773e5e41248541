"""ModernBERT (Warner et al., 2024): ``ModernBertConfig``, ``ModernBertModel`` and its heads.

Layers attend to everything or within a window, each kind with rotary frequencies of its own; the first attention follows
the norm of the embedding and has none.
"""

from __future__ import annotations

from zoo.families.common import fields as f
from zoo.families.common.decoders import query_key_value
from zoo.families.common.encoders import masked
from zoo.families.common.family import Family, HeadClass
from zoo.families.common.heads import BODY, Labels
from zoo.families.common.modernbert import (
    ANSWERS,
    TRANSFORM,
    modernbert_body,
    modernbert_tensors,
    transform_tensors,
)
from zoo.families.common.tensors import affine, fused

_TOKENS = tuple(f"{name}_token_id" for name in ("pad", "bos", "eos", "cls", "sep"))
"""Special tokens, whose defaults may be beyond the vocabulary."""
_CLASSES = {
    "ModernBertModel": BODY,
    "ModernBertForMaskedLM": masked(**TRANSFORM, bias=f.Bool("decoder_bias", default=True)),
    "ModernBertForSequenceClassification": HeadClass(
        "classification",
        {
            "labels": Labels(),
            **ANSWERS,
            "pooling": f.Choice("classifier_pooling", {"cls": "first", "mean": "mean"}, "cls"),
        },
    ),
    "ModernBertForTokenClassification": HeadClass("token_classification", {"labels": Labels(), **ANSWERS}),
    "ModernBertForQuestionAnswering": HeadClass("question_answering", ANSWERS),
}


_BEFORE = transform_tensors("head")
_TENSORS = modernbert_tensors(
    "modernbert",
    "encoder",
    fused("layers.{layer}.attn.Wqkv", query_key_value("encoder.blocks.{layer}")),
    {
        "masked_language_modeling": (*_BEFORE, *affine("decoder", "head.vocabulary")),
        "classification": (*_BEFORE, *affine("classifier", "head.labels")),
        "token_classification": (*_BEFORE, *affine("classifier", "head.labels")),
        "question_answering": (*_BEFORE, *affine("classifier", "head.span")),
    },
    "head.",
    "decoder.",
    "classifier.",
)
_OF_HEADS = (*(f"classifier_{name}" for name in ("activation", "bias", "dropout", "pooling")), "decoder_bias")
_OF_TRAINING = (
    "sparse_prediction", "sparse_pred_ignore_index", "deterministic_flash_attn", "reference_compile",
    "repad_logits_with_grad", "initializer_cutoff_factor",
)  # fmt: skip

_WINDOW = f.Checked(
    f.Int("local_attention", default=128),
    lambda window: window >= 2,
    "must be 2 or more, half on either side",
)

FAMILIES = (
    Family(
        "modernbert",
        _TENSORS,
        modernbert_body("encoder", _WINDOW, **dict.fromkeys(_TOKENS)),
        _CLASSES,
        fixed={"position_embedding_type": ("absolute", "positions are always rotary")},
        ignored=(*_OF_HEADS, *_OF_TRAINING, "layer_norm_eps"),
    ),
)
