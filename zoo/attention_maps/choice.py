"""The choice of attentions to record."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from specs.base.errors import UserError, option_name
from specs.base.suggest import suggestion
from specs.model.model import Model
from specs.model.stack import STACKS, Stack
from specs.model.stack import StackName as _StackName

Reader = _StackName
"""A stack, which reads an input of its own."""

StackName = Reader | Literal["cross"]
"""Self-attention of a stack, or cross-attention of the decoder to the encoder."""

HeadCounts = list[int | None]
"""The number of heads in each layer: 0 without attention, None for attention kinds without ``heads``."""

ATTENTIONS: dict[str, StackName] = {**{name: name for name in STACKS}, "cross": "cross"}


def looks(stack: StackName) -> Reader:
    """The stack whose vectors are the queries."""
    return "decoder" if stack == "cross" else stack


def looked_at(stack: StackName) -> Reader:
    """The stack whose vectors are the keys."""
    return "encoder" if stack == "cross" else stack


@dataclass(frozen=True)
class AttentionChoice:
    """The chosen layers of each stack, and the chosen heads of each layer, or None for all."""

    layers: Mapping[StackName, Sequence[int]]
    heads: Sequence[int] | None = None

    def wants(self, stack: StackName, layer: int) -> bool:
        """Whether a layer is chosen."""
        return layer in self.layers.get(stack, ())


def choose(
    spec: Model,
    stacks: Sequence[str] = (),
    layers: Sequence[int] | None = None,
    heads: Sequence[int] | None = None,
) -> AttentionChoice:
    """Choose stacks, layers and heads of a model; the default is all.

    Raises :class:`specs.base.errors.UserError` for those that the model does not have.
    """
    counts = heads_by_layer(spec)
    for name in stacks:
        _check_stack(spec, name, counts)
    chosen: dict[StackName, Sequence[int]] = {}
    for stack in counts:
        if not stacks or stack in stacks:
            attending = [layer for layer, count in enumerate(counts[stack]) if count != 0]
            chosen[stack] = attending if layers is None else layers
            _check_layers(spec, stack, layers or (), counts[stack])
            _check_heads(spec, stack, chosen[stack], heads or (), counts[stack])
    _check_sums(spec, chosen.get("encoder", ()))
    if not any(chosen.values()):
        raise UserError(f"{spec.name} has no layer with attention\n  Choose a model that has one.")
    return AttentionChoice(chosen, heads)


def _check_stack(spec: Model, name: str, counts: Mapping[StackName, HeadCounts]) -> None:
    """Refuse a stack that the model does not have."""
    if name not in ATTENTIONS:
        raise UserError(f"{option_name('stack')} {name!r} is unknown\n  {suggestion(name, ATTENTIONS)}")
    if ATTENTIONS[name] not in counts:
        raise UserError(
            f"{spec.name} has no such attention: its architecture is {spec.architecture}\n"
            f"  value: {option_name('stack')} {name}\n  Use {' or '.join(counts)}."
        )


def _check_layers(spec: Model, stack: StackName, layers: Sequence[int], counts: HeadCounts) -> None:
    """Refuse layers that a stack does not have, or that have no attention."""
    title = _title(stack)
    for layer in layers:
        if layer >= len(counts):
            raise UserError(
                f"The {title} of {spec.name} has no such layer\n"
                f"  value: {option_name('layer')} {layer}\n  Use {_to(len(counts))}."
            )
    for layer in layers:
        if counts[layer] == 0:
            raise UserError(
                f"Layer {layer} of the {title} of {spec.name} has no attention\n"
                f"  value: {option_name('layer')} {layer}\n  Use {_with_attention(counts)}."
            )


def _check_heads(
    spec: Model, stack: StackName, layers: Sequence[int], heads: Sequence[int], counts: HeadCounts
) -> None:
    """Refuse heads that a layer does not have."""
    for layer in layers:
        count = counts[layer]
        for head in heads:
            if count is not None and head >= count:
                raise UserError(
                    f"Layer {layer} of the {_title(stack)} of {spec.name} has no such head\n"
                    f"  value: {option_name('head')} {head}\n  Use {_to(count)}."
                )


def _check_sums(spec: Model, layers: Sequence[int]) -> None:
    """Refuse layers of an encoder that attend to block summaries."""
    for layer in layers:
        if _sums_blocks(spec, layer):
            raise UserError(
                f"Layer {layer} of the encoder of {spec.name} attends to sums of blocks of tokens, which maps of tokens do not have\n"
                f"  value: {option_name('layer')} {layer}\n"
                f"  Choose another stack with {option_name('stack')}, or remove block_summaries."
            )


def _title(stack: StackName) -> str:
    return "cross-attention" if stack == "cross" else stack


def heads_by_layer(spec: Model) -> dict[StackName, HeadCounts]:
    """The number of heads in each layer of each stack."""
    counts: dict[StackName, HeadCounts] = {name: _heads(stack) for name, stack in spec.stacks()}
    if spec.architecture == "encoder-decoder" and spec.decoder is not None:
        counts["cross"] = _heads(spec.decoder, cross=True)
    return counts


def _sums_blocks(spec: Model, layer: int) -> bool:
    attention = spec.stack("encoder").layer_blocks()[layer].attention
    return attention is not None and attention.summarized_tokens is not None


def _heads(stack: Stack, *, cross: bool = False) -> HeadCounts:
    blocks = stack.layer_blocks()
    attentions = [(cross and block.cross_attention) or block.attention for block in blocks]
    return [0 if attention is None else attention.position_heads or None for attention in attentions]


def _with_attention(counts: Sequence[int | None]) -> str:
    """The layers that have attention, as text: the first few."""
    layers = [str(layer) for layer, count in enumerate(counts) if count != 0]
    return ", ".join(layers[:8]) + (" or another" if len(layers) > 8 else "")


def _to(count: int) -> str:
    return "0" if count == 1 else f"0 to {count - 1}"
