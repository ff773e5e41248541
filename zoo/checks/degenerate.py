"""Specs whose outputs legitimately depend on little, so that a check for dependence would be meaningless."""

from __future__ import annotations

from specs.kinds.attention import MultiHeadShape
from specs.kinds.embedding import Tokens
from specs.kinds.head import MaskedLanguageModeling, Pooled, TransformingHead
from specs.kinds.linear_attention import LinearAttention
from specs.kinds.mamba import Mamba
from specs.kinds.norm import NoNorm
from specs.kinds.residual import NoResidual
from specs.model.model import Model


def why_insensitive(spec: Model) -> str:
    """Return the reason why the outputs of a spec need not depend on its inputs; empty where they must."""
    if spec.vocab_size == 1:
        return "the vocabulary has only one token"
    widths = (
        [spec.width_of(stack) for _, stack in spec.stacks()]
        if any(not isinstance(norm, NoNorm) for norm in _stack_norms(spec))
        else []
    )
    widths += _query_key_widths(spec) + _selection_widths(spec) + _output_widths(spec)
    for _, stack in spec.stacks():
        embedding = spec.embedding_of(stack)
        if isinstance(embedding, Tokens) and embedding.norm is not None:
            widths.append(embedding.position_width(spec.width_of(stack)))
    if isinstance(spec.head, MaskedLanguageModeling) and spec.head.norm is not None:
        widths.append(spec.embedding_width)
    if isinstance(spec.head, TransformingHead) and spec.head.norm is not None:
        widths.append(spec.output_width)
    if widths and min(widths) < 3:
        return f"a normalized vector of width {min(widths)} carries only signs"
    if (
        isinstance(spec.head, Pooled)
        and spec.head.normalize
        and (spec.head.projection or spec.output_width) == 1
    ):
        return "a unit vector of width 1 carries only a sign"
    return ""


def _query_key_widths(spec: Model) -> list[int]:
    """The widths over which queries and keys are normalised."""
    attentions = [
        (block.attention, spec.width_of(stack))
        for _, stack in spec.stacks()
        for block in stack.layer_blocks()
    ]
    return [
        each.head_width(width)
        for each, width in attentions
        if isinstance(each, MultiHeadShape) and each.qk_norm is not None
    ]


def _selection_widths(spec: Model) -> list[int]:
    """The widths over which the inputs of Mamba's states and step sizes are normalised."""
    mixers = [block.mixer for _, stack in spec.stacks() for block in stack.layer_blocks()]
    normed = [each for each in mixers if isinstance(each, Mamba) and each.norm is not None]
    return [
        width
        for each in normed
        if not isinstance(each.norm, NoNorm)
        for width in (each.state_size, each.step_rank)
    ]


def _output_widths(spec: Model) -> list[int]:
    """The widths over which the outputs of linear attention are normalised."""
    mixers = [block.mixer for _, stack in spec.stacks() for block in stack.layer_blocks()]
    return [
        each.value_width if each.output_norm.over == "head" else each.heads * each.value_width
        for each in mixers
        if isinstance(each, LinearAttention) and not isinstance(each.output_norm.norm, NoNorm)
    ]


def may_fade(spec: Model) -> str:
    """Return the reason why signals may vanish on their way through random weights; empty where they must not.

    Attention alone makes all tokens alike, doubly exponentially in depth (Dong et al., 2021).
    """
    blocks = [block for _, stack in spec.stacks() for block in stack.layer_blocks()]
    if any(
        isinstance(block.residual_of(branch), NoResidual) for block in blocks for branch in block.branches()
    ):
        return "a signal was lost, which is expected: without residuals, attention makes all tokens alike"
    return ""


def _stack_norms(spec: Model) -> list[object]:
    blocks = [block for _, stack in spec.stacks() for block in stack.layer_blocks()]
    return [norm for block in blocks for norm in block.norms_used()]
