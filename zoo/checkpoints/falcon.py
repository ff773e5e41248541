"""Falcon (Almazrouei et al., 2023): ``FalconModel`` and its heads.

Queries, keys and values are stored as one, group by group of query heads that share a key.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from specs.block import Parallel
from specs.model import Model
from zoo.checkpoints.decoders import OPTIONAL, OUTSIDE, decoder_heads, grouped, query_key_value
from zoo.checkpoints.family import Family, Rule, affine, fused, same

_STORED, _BLOCK = "h.{layer}", "decoder.blocks.{layer}"


def _parallel(spec: Model) -> bool:
    return spec.decoder is not None and isinstance(spec.decoder.layer_blocks()[0], Parallel)


def _sequential(spec: Model) -> bool:
    return not _parallel(spec)


def _norm(module: str, *, parallel: str, sequential: str) -> Iterator[Rule]:
    """The norm of a branch, whose name says how the branches stand to each other."""
    for stored, where in ((parallel, _parallel), (sequential, _sequential)):
        yield from (
            replace(rule, where=where) for rule in affine(f"{_STORED}.{stored}", f"{_BLOCK}.{module}")
        )


FALCON = Family(
    name="falcon",
    model_types=("falcon",),
    prefix="transformer.",
    outside=OUTSIDE,
    rules=(
        same("word_embeddings.weight", "embedding.token.weight"),
        *affine(f"{_STORED}.input_layernorm", f"{_BLOCK}.norm"),
        *_norm("attention_norm", parallel="ln_attn", sequential="input_layernorm"),
        *_norm("feed_forward_norm", parallel="ln_mlp", sequential="post_attention_layernorm"),
        *fused(
            f"{_STORED}.self_attention.query_key_value.weight",
            f"{_STORED}.self_attention.query_key_value.bias",
            query_key_value(_BLOCK),
            grouped,
            grouped,
        ),
        *affine(f"{_STORED}.self_attention.dense", f"{_BLOCK}.attention.output"),
        *affine(f"{_STORED}.mlp.dense_h_to_4h", f"{_BLOCK}.feed_forward.up"),
        *affine(f"{_STORED}.mlp.dense_4h_to_h", f"{_BLOCK}.feed_forward.down"),
        *affine("ln_f", "decoder.final_norm"),
    ),
    heads=decoder_heads(),
    optional=OPTIONAL,
)
