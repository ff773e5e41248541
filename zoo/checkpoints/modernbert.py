"""ModernBERT (Warner et al., 2024): ``ModernBertModel`` and its heads."""

from __future__ import annotations

from zoo.checkpoints.family import Family, affine, fused

_STORED, _BLOCK = "layers.{layer}", "encoder.blocks.{layer}"

_TRANSFORM = (*affine("head.dense", "head.dense"), *affine("head.norm", "head.norm"))

MODERNBERT = Family(
    name="modernbert",
    model_types=("modernbert",),
    prefix="model.",
    outside=("head.", "decoder.", "classifier."),
    rules=(
        *affine("embeddings.tok_embeddings", "embedding.token"),
        *affine("embeddings.norm", "embedding.norm"),
        *affine(f"{_STORED}.attn_norm", f"{_BLOCK}.attention_norm"),
        *fused(
            f"{_STORED}.attn.Wqkv.weight",
            f"{_STORED}.attn.Wqkv.bias",
            tuple(f"{_BLOCK}.attention.{projection}" for projection in ("query", "key", "value")),
        ),
        *affine(f"{_STORED}.attn.Wo", f"{_BLOCK}.attention.output"),
        *affine(f"{_STORED}.mlp_norm", f"{_BLOCK}.feed_forward_norm"),
        *fused(
            f"{_STORED}.mlp.Wi.weight",
            f"{_STORED}.mlp.Wi.bias",
            (f"{_BLOCK}.feed_forward.gate", f"{_BLOCK}.feed_forward.up"),
        ),
        *affine(f"{_STORED}.mlp.Wo", f"{_BLOCK}.feed_forward.down"),
        *affine("final_norm", "encoder.final_norm"),
    ),
    heads={
        "masked_language_modeling": (*_TRANSFORM, *affine("decoder", "head.vocabulary")),
        "classification": (*_TRANSFORM, *affine("classifier", "head.labels")),
        "token_classification": (*_TRANSFORM, *affine("classifier", "head.labels")),
        "question_answering": (*_TRANSFORM, *affine("classifier", "head.span")),
    },
    optional=("head.*", "decoder.*", "classifier.*"),
    unused=("rotary_emb.*", "layers.*.attn.rotary_emb.*"),
)
