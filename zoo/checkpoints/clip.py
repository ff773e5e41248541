"""The text encoder of CLIP (Radford et al., 2021): ``CLIPTextModel`` and ``CLIPTextModelWithProjection``.

Checkpoints of the whole of CLIP have it beside the image encoder, which is left out.
"""

from __future__ import annotations

from zoo.checkpoints.family import Family, affine, same

_STORED, _BLOCK = "encoder.layers.{layer}", "encoder.blocks.{layer}"

CLIP = Family(
    name="clip",
    model_types=("clip_text_model", "clip"),
    prefix="text_model.",
    outside=("text_projection.",),
    bare_heads=(),
    rules=(
        same("embeddings.token_embedding.weight", "embedding.token.weight"),
        same("embeddings.position_embedding.weight", "embedding.position.table.weight"),
        *affine(f"{_STORED}.layer_norm1", f"{_BLOCK}.attention_norm"),
        *affine(f"{_STORED}.self_attn.q_proj", f"{_BLOCK}.attention.query"),
        *affine(f"{_STORED}.self_attn.k_proj", f"{_BLOCK}.attention.key"),
        *affine(f"{_STORED}.self_attn.v_proj", f"{_BLOCK}.attention.value"),
        *affine(f"{_STORED}.self_attn.out_proj", f"{_BLOCK}.attention.output"),
        *affine(f"{_STORED}.layer_norm2", f"{_BLOCK}.feed_forward_norm"),
        *affine(f"{_STORED}.mlp.fc1", f"{_BLOCK}.feed_forward.up"),
        *affine(f"{_STORED}.mlp.fc2", f"{_BLOCK}.feed_forward.down"),
        *affine("final_layer_norm", "encoder.final_norm"),
    ),
    heads={"pooled": (same("text_projection.weight", "head.projection.weight"),)},
    optional=("text_projection.weight", "vision_model.*", "visual_projection.weight", "logit_scale"),
    unused=("embeddings.position_ids",),
)
