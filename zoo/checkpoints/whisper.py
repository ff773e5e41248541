"""Whisper (Radford et al., 2022): ``WhisperModel``, ``WhisperForConditionalGeneration``."""

from __future__ import annotations

from zoo.checkpoints.bart import stack
from zoo.checkpoints.family import Family, affine, same

WHISPER = Family(
    name="whisper",
    model_types=("whisper",),
    prefix="model.",
    outside=("proj_out.",),
    rules=(
        *affine("encoder.conv1", "encoder_embedding.first"),
        *affine("encoder.conv2", "encoder_embedding.second"),
        *stack("encoder"),
        same("decoder.embed_tokens.weight", "decoder_embedding.token.weight"),
        *stack("decoder"),
    ),
    heads={"language_modeling": (same("proj_out.weight", "head.vocabulary.weight"),)},
    optional=("proj_out.weight",),
)
