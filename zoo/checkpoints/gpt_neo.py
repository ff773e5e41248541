"""GPT-Neo (Black et al., 2021): ``GPTNeoModel`` and its heads."""

from __future__ import annotations

from zoo.checkpoints.decoders import OPTIONAL, OUTSIDE, decoder_heads
from zoo.checkpoints.family import Family, affine, same

_STORED, _BLOCK = "h.{layer}", "decoder.blocks.{layer}"

GPT_NEO = Family(
    name="gpt_neo",
    model_types=("gpt_neo",),
    prefix="transformer.",
    outside=OUTSIDE,
    rules=(
        same("wte.weight", "embedding.token.weight"),
        same("wpe.weight", "embedding.position.table.weight"),
        *affine(f"{_STORED}.ln_1", f"{_BLOCK}.attention_norm"),
        *affine(f"{_STORED}.attn.attention.q_proj", f"{_BLOCK}.attention.query"),
        *affine(f"{_STORED}.attn.attention.k_proj", f"{_BLOCK}.attention.key"),
        *affine(f"{_STORED}.attn.attention.v_proj", f"{_BLOCK}.attention.value"),
        *affine(f"{_STORED}.attn.attention.out_proj", f"{_BLOCK}.attention.output"),
        *affine(f"{_STORED}.ln_2", f"{_BLOCK}.feed_forward_norm"),
        *affine(f"{_STORED}.mlp.c_fc", f"{_BLOCK}.feed_forward.up"),
        *affine(f"{_STORED}.mlp.c_proj", f"{_BLOCK}.feed_forward.down"),
        *affine("ln_f", "decoder.final_norm"),
    ),
    heads=decoder_heads(),
    optional=OPTIONAL,
    unused=("h.*.attn.attention.bias", "h.*.attn.attention.masked_bias"),
)
