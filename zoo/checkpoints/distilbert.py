"""DistilBERT (Sanh et al., 2019): ``DistilBertModel`` and its heads."""

from __future__ import annotations

from zoo.checkpoints.family import Family, affine, same

_STORED, _BLOCK = "transformer.layer.{layer}", "encoder.blocks.{layer}"

DISTILBERT = Family(
    name="distilbert",
    model_types=("distilbert",),
    prefix="distilbert.",
    outside=("vocab_", "pre_classifier.", "classifier.", "qa_outputs."),
    rules=(
        same("embeddings.word_embeddings.weight", "embedding.token.weight"),
        same("embeddings.position_embeddings.weight", "embedding.position.table.weight"),
        *affine("embeddings.LayerNorm", "embedding.norm"),
        *affine(f"{_STORED}.attention.q_lin", f"{_BLOCK}.attention.query"),
        *affine(f"{_STORED}.attention.k_lin", f"{_BLOCK}.attention.key"),
        *affine(f"{_STORED}.attention.v_lin", f"{_BLOCK}.attention.value"),
        *affine(f"{_STORED}.attention.out_lin", f"{_BLOCK}.attention.output"),
        *affine(f"{_STORED}.sa_layer_norm", f"{_BLOCK}.attention_norm"),
        *affine(f"{_STORED}.ffn.lin1", f"{_BLOCK}.feed_forward.up"),
        *affine(f"{_STORED}.ffn.lin2", f"{_BLOCK}.feed_forward.down"),
        *affine(f"{_STORED}.output_layer_norm", f"{_BLOCK}.feed_forward_norm"),
    ),
    heads={
        "masked_language_modeling": (
            *affine("vocab_transform", "head.dense"),
            *affine("vocab_layer_norm", "head.norm"),
            *affine("vocab_projector", "head.vocabulary"),
        ),
        "classification": (
            *affine("pre_classifier", "head.dense"),
            *affine("classifier", "head.labels"),
        ),
        "token_classification": affine("classifier", "head.labels"),
        "question_answering": affine("qa_outputs", "head.span"),
    },
    optional=("vocab_*", "pre_classifier.*", "classifier.*", "qa_outputs.*"),
    unused=("embeddings.position_ids",),
)
