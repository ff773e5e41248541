"""BLOOM (BigScience, 2022): ``BloomModel`` and its heads.

Queries, keys and values are stored as one, head by head.
"""

from __future__ import annotations

from zoo.checkpoints.decoders import OPTIONAL, OUTSIDE, decoder_heads, grouped, query_key_value
from zoo.checkpoints.family import Family, affine, fused, same

_STORED, _BLOCK = "h.{layer}", "decoder.blocks.{layer}"

BLOOM = Family(
    name="bloom",
    model_types=("bloom",),
    prefix="transformer.",
    outside=OUTSIDE,
    rules=(
        same("word_embeddings.weight", "embedding.token.weight"),
        *affine("word_embeddings_layernorm", "embedding.norm"),
        *affine(f"{_STORED}.input_layernorm", f"{_BLOCK}.attention_norm"),
        *fused(
            f"{_STORED}.self_attention.query_key_value.weight",
            f"{_STORED}.self_attention.query_key_value.bias",
            query_key_value(_BLOCK),
            grouped,
            grouped,
        ),
        *affine(f"{_STORED}.self_attention.dense", f"{_BLOCK}.attention.output"),
        *affine(f"{_STORED}.post_attention_layernorm", f"{_BLOCK}.feed_forward_norm"),
        *affine(f"{_STORED}.mlp.dense_h_to_4h", f"{_BLOCK}.feed_forward.up"),
        *affine(f"{_STORED}.mlp.dense_4h_to_h", f"{_BLOCK}.feed_forward.down"),
        *affine("ln_f", "decoder.final_norm"),
    ),
    heads=decoder_heads(),
    optional=OPTIONAL,
)
