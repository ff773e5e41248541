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
    there = heads_by_layer(spec)
    for name in stacks:
        if name not in ATTENTIONS:
            raise UserError(f"{option_name('stack')} {name!r} is unknown\n  {suggestion(name, ATTENTIONS)}")
        if ATTENTIONS[name] not in there:
            raise UserError(
                f"{spec.name} has no such attention: its architecture is {spec.architecture}\n"
                f"  value: {option_name('stack')} {name}\n  Use {' or '.join(there)}."
            )
    chosen = {name: there[name] for name in there if name in (stacks or there)}
    for name, counts in chosen.items():
        where = name if name != "cross" else "cross-attention"
        for layer in layers or ():
            if layer >= len(counts):
                raise UserError(
                    f"The {where} of {spec.name} has no such layer\n"
                    f"  value: {option_name('layer')} {layer}\n  Use {_to(len(counts))}."
                )
        for layer in range(len(counts)) if layers is None else layers:
            count = counts[layer]
            if count == 0 and layers is not None:
                raise UserError(
                    f"Layer {layer} of the {where} of {spec.name} has no attention\n"
                    f"  value: {option_name('layer')} {layer}\n  Use {_with_attention(counts)}."
                )
            for head in heads or () if count != 0 else ():
                if count is not None and head >= count:
                    raise UserError(
                        f"Layer {layer} of the {where} of {spec.name} has no such head\n"
                        f"  value: {option_name('head')} {head}\n  Use {_to(count)}."
                    )
    wanted = {
        name: [layer for layer, count in enumerate(counts) if count != 0] if layers is None else layers
        for name, counts in chosen.items()
    }
    summing = next((layer for layer in wanted.get("encoder", ()) if _sums_blocks(spec, layer)), None)
    if summing is not None:
        raise UserError(
            f"Layer {summing} of the encoder of {spec.name} attends to sums of blocks of tokens, which maps of tokens do not have\n"
            f"  value: {option_name('layer')} {summing}\n  Choose another stack with {option_name('stack')}, or remove block_summaries."
        )
    if not any(wanted.values()):
        raise UserError(f"{spec.name} has no layer with attention\n  Choose a model that has one.")
    return AttentionChoice(wanted, heads)


def heads_by_layer(spec: Model) -> dict[StackName, list[int | None]]:
    """The number of heads in each layer of each stack: 0 without attention, None for attention kinds without ``heads``."""
    found: dict[StackName, list[int | None]] = {name: _heads(stack) for name, stack in spec.stacks()}
    if spec.architecture == "encoder-decoder" and spec.decoder is not None:
        found["cross"] = _heads(spec.decoder, cross=True)
    return found


def _sums_blocks(spec: Model, layer: int) -> bool:
    assert spec.encoder is not None
    attention = spec.encoder.layer_blocks()[layer].attention
    return attention is not None and attention.summarized_tokens is not None


def _heads(stack: Stack, *, cross: bool = False) -> list[int | None]:
    blocks = stack.layer_blocks()
    attentions = [(cross and block.cross_attention) or block.attention for block in blocks]
    return [0 if attention is None else attention.position_heads or None for attention in attentions]


def _with_attention(counts: Sequence[int | None]) -> str:
    """The layers that have attention, as text: the first few."""
    there = [str(layer) for layer, count in enumerate(counts) if count != 0]
    return ", ".join(there[:8]) + (" or another" if len(there) > 8 else "")


def _to(count: int) -> str:
    return "0" if count == 1 else f"0 to {count - 1}"
