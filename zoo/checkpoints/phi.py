"""Phi-1, Phi-1.5 and Phi-2 (Gunasekar et al., 2023): ``PhiModel`` and its heads."""

from __future__ import annotations

from zoo.checkpoints.decoders import OPTIONAL, OUTSIDE, decoder_heads
from zoo.checkpoints.family import Family, affine, same

_STORED, _BLOCK = "layers.{layer}", "decoder.blocks.{layer}"

PHI = Family(
    name="phi",
    model_types=("phi",),
    prefix="model.",
    outside=OUTSIDE,
    rules=(
        same("embed_tokens.weight", "embedding.token.weight"),
        *affine(f"{_STORED}.input_layernorm", f"{_BLOCK}.norm"),
        *affine(f"{_STORED}.self_attn.q_proj", f"{_BLOCK}.attention.query"),
        *affine(f"{_STORED}.self_attn.k_proj", f"{_BLOCK}.attention.key"),
        *affine(f"{_STORED}.self_attn.v_proj", f"{_BLOCK}.attention.value"),
        *affine(f"{_STORED}.self_attn.dense", f"{_BLOCK}.attention.output"),
        *affine(f"{_STORED}.self_attn.q_layernorm", f"{_BLOCK}.attention.query_norm"),
        *affine(f"{_STORED}.self_attn.k_layernorm", f"{_BLOCK}.attention.key_norm"),
        *affine(f"{_STORED}.mlp.fc1", f"{_BLOCK}.feed_forward.up"),
        *affine(f"{_STORED}.mlp.fc2", f"{_BLOCK}.feed_forward.down"),
        *affine("final_layernorm", "decoder.final_norm"),
    ),
    heads=decoder_heads(tokens="score"),
    optional=OPTIONAL,
    unused=("layers.*.self_attn.rotary_emb.inv_freq", "rotary_emb.inv_freq"),
)
