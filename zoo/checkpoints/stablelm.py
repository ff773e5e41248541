"""StableLM (Bellagente et al., 2024): ``StableLmModel`` and its heads."""

from __future__ import annotations

from zoo.checkpoints.decoders import OPTIONAL, OUTSIDE, decoder_heads
from zoo.checkpoints.family import Family, affine, same

_STORED, _BLOCK = "layers.{layer}", "decoder.blocks.{layer}"

STABLELM = Family(
    name="stablelm",
    model_types=("stablelm",),
    prefix="model.",
    outside=OUTSIDE,
    rules=(
        same("embed_tokens.weight", "embedding.token.weight"),
        *affine(f"{_STORED}.input_layernorm", f"{_BLOCK}.norm"),
        *affine(f"{_STORED}.input_layernorm", f"{_BLOCK}.attention_norm"),
        *affine(f"{_STORED}.self_attn.q_proj", f"{_BLOCK}.attention.query"),
        *affine(f"{_STORED}.self_attn.k_proj", f"{_BLOCK}.attention.key"),
        *affine(f"{_STORED}.self_attn.v_proj", f"{_BLOCK}.attention.value"),
        same(f"{_STORED}.self_attn.o_proj.weight", f"{_BLOCK}.attention.output.weight"),
        same(
            f"{_STORED}.self_attn.q_layernorm.norms.{{head}}.weight", f"{_BLOCK}.attention.query_norm.weight"
        ),
        same(f"{_STORED}.self_attn.k_layernorm.norms.{{head}}.weight", f"{_BLOCK}.attention.key_norm.weight"),
        *affine(f"{_STORED}.post_attention_layernorm", f"{_BLOCK}.feed_forward_norm"),
        same(f"{_STORED}.mlp.gate_proj.weight", f"{_BLOCK}.feed_forward.gate.weight"),
        same(f"{_STORED}.mlp.up_proj.weight", f"{_BLOCK}.feed_forward.up.weight"),
        same(f"{_STORED}.mlp.down_proj.weight", f"{_BLOCK}.feed_forward.down.weight"),
        *affine("norm", "decoder.final_norm"),
    ),
    heads=decoder_heads(tokens="score"),
    optional=OPTIONAL,
    unused=("layers.*.self_attn.rotary_emb.inv_freq", "rotary_emb.inv_freq"),
)
