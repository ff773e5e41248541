"""GPT (Radford et al., 2018): ``OpenAIGPTModel``, ``OpenAIGPTLMHeadModel``, ``OpenAIGPTForSequenceClassification``.

Its matrices are stored d_in x d_out, and queries, keys and values as one.
"""

from __future__ import annotations

from zoo.checkpoints.decoders import OPTIONAL, OUTSIDE, decoder_heads, query_key_value
from zoo.checkpoints.family import Family, affine, fused, same, transposed
from zoo.checkpoints.transforms import STACKED, Transposed

_STORED, _BLOCK = "h.{layer}", "decoder.blocks.{layer}"

OPENAI_GPT = Family(
    name="openai-gpt",
    model_types=("openai-gpt",),
    prefix="transformer.",
    outside=OUTSIDE,
    rules=(
        same("tokens_embed.weight", "embedding.token.weight"),
        same("positions_embed.weight", "embedding.position.table.weight"),
        *fused(
            f"{_STORED}.attn.c_attn.weight",
            f"{_STORED}.attn.c_attn.bias",
            query_key_value(_BLOCK),
            Transposed(STACKED),
        ),
        *transposed(f"{_STORED}.attn.c_proj", f"{_BLOCK}.attention.output"),
        *affine(f"{_STORED}.ln_1", f"{_BLOCK}.attention_norm"),
        *transposed(f"{_STORED}.mlp.c_fc", f"{_BLOCK}.feed_forward.up"),
        *transposed(f"{_STORED}.mlp.c_proj", f"{_BLOCK}.feed_forward.down"),
        *affine(f"{_STORED}.ln_2", f"{_BLOCK}.feed_forward_norm"),
    ),
    heads=decoder_heads(),
    optional=OPTIONAL,
    unused=("h.*.attn.bias", "position_ids"),
)
