"""GPT-J (Wang and Komatsuzaki, 2021): ``GPTJModel`` and its heads."""

from __future__ import annotations

from zoo.checkpoints.decoders import OPTIONAL, OUTSIDE, decoder_heads
from zoo.checkpoints.family import Family, affine, same

_STORED, _BLOCK = "h.{layer}", "decoder.blocks.{layer}"

GPTJ = Family(
    name="gptj",
    model_types=("gptj",),
    prefix="transformer.",
    outside=OUTSIDE,
    rules=(
        same("wte.weight", "embedding.token.weight"),
        *affine(f"{_STORED}.ln_1", f"{_BLOCK}.norm"),
        *affine(f"{_STORED}.attn.q_proj", f"{_BLOCK}.attention.query"),
        *affine(f"{_STORED}.attn.k_proj", f"{_BLOCK}.attention.key"),
        *affine(f"{_STORED}.attn.v_proj", f"{_BLOCK}.attention.value"),
        *affine(f"{_STORED}.attn.out_proj", f"{_BLOCK}.attention.output"),
        *affine(f"{_STORED}.mlp.fc_in", f"{_BLOCK}.feed_forward.up"),
        *affine(f"{_STORED}.mlp.fc_out", f"{_BLOCK}.feed_forward.down"),
        *affine("ln_f", "decoder.final_norm"),
    ),
    heads=decoder_heads(),
    optional=OPTIONAL,
    unused=("h.*.attn.bias", "h.*.attn.masked_bias", "h.*.attn.embed_positions"),
)
