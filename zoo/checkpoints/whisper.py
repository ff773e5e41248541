"""Whisper (Radford et al., 2022): ``WhisperModel``, ``WhisperForConditionalGeneration``."""

from __future__ import annotations

from zoo.checkpoints.family import Family, Rule, affine, same


def _attention(stored: str, module: str) -> tuple[Rule, ...]:
    return (
        *affine(f"{stored}.q_proj", f"{module}.query"),
        *affine(f"{stored}.k_proj", f"{module}.key"),
        *affine(f"{stored}.v_proj", f"{module}.value"),
        *affine(f"{stored}.out_proj", f"{module}.output"),
    )


def _stack(stack: str) -> tuple[Rule, ...]:
    layer, block = f"{stack}.layers.{{layer}}", f"{stack}.blocks.{{layer}}"
    return (
        same(f"{stack}.embed_positions.weight", f"{stack}_embedding.position.table.weight"),
        *affine(f"{layer}.self_attn_layer_norm", f"{block}.attention_norm"),
        *_attention(f"{layer}.self_attn", f"{block}.attention"),
        *affine(f"{layer}.final_layer_norm", f"{block}.feed_forward_norm"),
        *affine(f"{layer}.fc1", f"{block}.feed_forward.up"),
        *affine(f"{layer}.fc2", f"{block}.feed_forward.down"),
        *affine(f"{stack}.layer_norm", f"{stack}.final_norm"),
    )


_LAYER, _BLOCK = "decoder.layers.{layer}", "decoder.blocks.{layer}"

WHISPER = Family(
    name="whisper",
    model_types=("whisper",),
    prefix="model.",
    outside=("proj_out.",),
    rules=(
        *affine("encoder.conv1", "encoder_embedding.first"),
        *affine("encoder.conv2", "encoder_embedding.second"),
        *_stack("encoder"),
        same("decoder.embed_tokens.weight", "decoder_embedding.token.weight"),
        *_stack("decoder"),
        *affine(f"{_LAYER}.encoder_attn_layer_norm", f"{_BLOCK}.cross_attention_norm"),
        *_attention(f"{_LAYER}.encoder_attn", f"{_BLOCK}.cross_attention"),
    ),
    heads={"language_modeling": (same("proj_out.weight", "head.vocabulary.weight"),)},
    optional=("proj_out.weight",),
)
