"""GPT-NeoX (Black et al., 2022) and Pythia: ``GPTNeoXModel`` and its heads.

Queries, keys and values are stored as one, head by head.
"""

from __future__ import annotations

from zoo.checkpoints.decoders import OPTIONAL, OUTSIDE, decoder_heads, grouped, query_key_value
from zoo.checkpoints.family import Family, affine, fused, same

_STORED, _BLOCK = "layers.{layer}", "decoder.blocks.{layer}"

GPT_NEOX = Family(
    name="gpt_neox",
    model_types=("gpt_neox",),
    prefix="gpt_neox.",
    outside=("embed_out.", *OUTSIDE),
    rules=(
        same("embed_in.weight", "embedding.token.weight"),
        *affine(f"{_STORED}.input_layernorm", f"{_BLOCK}.attention_norm"),
        *fused(
            f"{_STORED}.attention.query_key_value.weight",
            f"{_STORED}.attention.query_key_value.bias",
            query_key_value(_BLOCK),
            grouped,
            grouped,
        ),
        *affine(f"{_STORED}.attention.dense", f"{_BLOCK}.attention.output"),
        *affine(f"{_STORED}.post_attention_layernorm", f"{_BLOCK}.feed_forward_norm"),
        *affine(f"{_STORED}.mlp.dense_h_to_4h", f"{_BLOCK}.feed_forward.up"),
        *affine(f"{_STORED}.mlp.dense_4h_to_h", f"{_BLOCK}.feed_forward.down"),
        *affine("final_layer_norm", "decoder.final_norm"),
    ),
    heads={
        **decoder_heads(),
        "language_modeling": (same("embed_out.weight", "head.vocabulary.weight", also=("lm_head.weight",)),),
    },
    optional=("embed_out.*", *OPTIONAL),
    unused=(
        "layers.*.attention.bias",
        "layers.*.attention.masked_bias",
        "layers.*.attention.rotary_emb.inv_freq",
    ),
)
