"""What generated code cannot express."""

from __future__ import annotations

from typing import Any

from specs.model.model import Model
from zoo.components.block import Block, PreNorm
from zoo.components.block_summaries import SummarizingBias
from zoo.components.disentangled import Disentangled
from zoo.components.gated_bias import GatedRelativeBias
from zoo.components.latent import Latent
from zoo.components.norm import BatchNorm
from zoo.components.norm_placements import NormedResidual, Parallel, PostNorm, ReorderedNorm, Sandwich
from zoo.components.position import Alibi, Learned, Position, RelativeBias, Rope, Sinusoidal
from zoo.models.stack import Stack
from zoo.models.varied_stack import VariedStack
from zoo.remote_code.collected import RemoteCodeError
from zoo.remote_code.heads import HEADS
from zoo.remote_code.modules import overrides
from zoo.remote_code.parts import parts_of

_KINDS = (PreNorm, PostNorm, Parallel, ReorderedNorm, Sandwich, NormedResidual,
          Position, Learned, Sinusoidal, Rope, Alibi, RelativeBias, GatedRelativeBias, SummarizingBias, Disentangled)  # fmt: skip
"""The kinds of blocks and positions that generated code has."""

_EXTRA = ("per_layer_embedding", "altup", "low_rank_residual", "output_scale")
"""Parts of blocks that generated code lacks."""


def check(model: Any, spec: Model) -> None:
    """Raise a :class:`RemoteCodeError` for the first part of a model that generated code lacks."""
    if spec.architecture not in ("decoder", "encoder", "encoder-decoder"):
        raise RemoteCodeError(
            f"{spec.name}: architecture {spec.architecture} cannot be written as remote code\n"
            "  Use a decoder, an encoder or both, of text, or a family that can express the spec."
        )
    parts = parts_of(model, spec)
    if any(part.embedding.token is None for part in parts):
        kind = spec.embedding_of(spec.first_stack).kind
        raise RemoteCodeError(
            f"{spec.name}: remote code reads tokens, and the model reads {kind}\n"
            "  Use a model of text, or a family that can express the spec."
        )
    heads = ("none", *(["language_modeling"] if spec.decodes else []), *(HEADS if len(parts) == 1 else ()))
    if spec.head.kind not in heads:
        raise RemoteCodeError(
            f"{spec.name}: head {spec.head.kind} cannot be written as remote code\n"
            f"  Use {', '.join(heads[1:])} or none."
        )
    _check_kinds(model, spec)
    for part in parts:
        _check_stack(spec, part.stack)


def _check_stack(spec: Model, stack: Stack) -> None:
    sources = stack.sources if isinstance(stack, VariedStack) else [None] * len(stack.blocks)
    if isinstance(stack, VariedStack) and stack.streams is not None:
        raise RemoteCodeError(f"{spec.name}: altup cannot be written as remote code\n  Remove it.")
    for layer, block in enumerate(stack.blocks):
        extra = [each for each in _EXTRA if getattr(block, each, None) is not None]
        summed = getattr(block.attention, "summaries", None) is not None
        biased = isinstance(block.attention, Latent) and overrides(stack.position_of(block.attention), "bias")
        limited = any(getattr(block.attention, each, None) for each in ("patch_window", "chunk"))
        if extra or summed or biased or limited or sources[layer] is not None:
            what = (
                extra[0]
                if extra
                else "block_summaries"
                if summed
                else "latent attention with biases of distances"
                if biased
                else "attention to the keys of another layer, or within chunks or windows of patches,"
            )
            raise RemoteCodeError(
                f"{spec.name}: {what} in layer {layer} cannot be written as remote code\n  Remove it, or use a family that has it."
            )


def _check_kinds(model: Any, spec: Model) -> None:
    """Refuse the kinds of blocks and positions that call each other in ways of their own."""
    for module in model.modules():
        own = isinstance(module, Block | Position) and type(module) not in _KINDS
        if own or isinstance(module, BatchNorm):
            kind = getattr(module, "component_kind", type(module).__name__)
            raise RemoteCodeError(
                f"{spec.name}: {kind} cannot be written as remote code\n  Use another kind, or a family that has it."
            )
