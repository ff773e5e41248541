"""OPT (Zhang et al., 2022): ``OPTModel`` and its heads.

OPT-350m has an embedding narrower than the model, with a projection on either side.
"""

from __future__ import annotations

from zoo.checkpoints.decoders import OPTIONAL, OUTSIDE, decoder_heads
from zoo.checkpoints.family import Family, affine, same

_STORED, _BLOCK = "decoder.layers.{layer}", "decoder.blocks.{layer}"
_HEADS = decoder_heads()

OPT = Family(
    name="opt",
    model_types=("opt",),
    prefix="model.",
    outside=OUTSIDE,
    rules=(
        same("decoder.embed_tokens.weight", "embedding.token.weight"),
        same("decoder.embed_positions.weight", "embedding.position.table.weight"),
        same("decoder.project_in.weight", "embedding.projection.weight"),
        *affine(f"{_STORED}.self_attn_layer_norm", f"{_BLOCK}.attention_norm"),
        *affine(f"{_STORED}.self_attn.q_proj", f"{_BLOCK}.attention.query"),
        *affine(f"{_STORED}.self_attn.k_proj", f"{_BLOCK}.attention.key"),
        *affine(f"{_STORED}.self_attn.v_proj", f"{_BLOCK}.attention.value"),
        *affine(f"{_STORED}.self_attn.out_proj", f"{_BLOCK}.attention.output"),
        *affine(f"{_STORED}.final_layer_norm", f"{_BLOCK}.feed_forward_norm"),
        *affine(f"{_STORED}.fc1", f"{_BLOCK}.feed_forward.up"),
        *affine(f"{_STORED}.fc2", f"{_BLOCK}.feed_forward.down"),
        *affine("decoder.final_layer_norm", "decoder.final_norm"),
    ),
    heads={
        **_HEADS,
        "language_modeling": (
            same("decoder.project_out.weight", "head.projection.weight"),
            *_HEADS["language_modeling"],
        ),
    },
    renamed={
        "decoder.layer_norm.weight": "decoder.final_layer_norm.weight",
        "decoder.layer_norm.bias": "decoder.final_layer_norm.bias",
    },
    optional=OPTIONAL,
)
