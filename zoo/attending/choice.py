"""Which attentions of a model are looked at."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from specs.errors import UserError, option_name
from specs.model import Model
from specs.stack import Stack
from specs.suggest import did_you_mean

StackName = Literal["encoder", "decoder", "cross"]
"""Whose attention: an encoder's or a decoder's to its own tokens, or a decoder's to the encoder's."""

STACKS: dict[str, StackName] = {"encoder": "encoder", "decoder": "decoder", "cross": "cross"}


@dataclass(frozen=True)
class Choice:
    """The layers of each stack that are wanted, and the heads of each of them, or None for all."""

    layers: Mapping[StackName, Sequence[int]]
    heads: Sequence[int] | None = None

    def wants(self, stack: StackName, layer: int) -> bool:
        """Whether a layer's attention is looked at."""
        return layer in self.layers.get(stack, ())


def choose(
    spec: Model,
    stacks: Sequence[str] = (),
    layers: Sequence[int] | None = None,
    heads: Sequence[int] | None = None,
) -> Choice:
    """A choice among the stacks, layers and heads that a model has, all where nothing is said.

    Raises :class:`specs.errors.UserError` for what it does not have.
    """
    there = heads_by_layer(spec)
    for name in stacks:
        if name not in STACKS:
            raise UserError(f"there is no {option_name('stack')} {name!r}: {did_you_mean(name, STACKS)}")
        if STACKS[name] not in there:
            raise UserError(
                f"{spec.name} has no such attention: its architecture is {spec.architecture}\n"
                f"  value: {option_name('stack')} {name}\n  {' or '.join(there)} would work"
            )
    chosen = {name: there[name] for name in there if name in (stacks or there)}
    for name, counts in chosen.items():
        where = f"the {name}" if name != "cross" else "the cross-attention"
        for layer in layers or ():
            if layer >= len(counts):
                raise UserError(
                    f"{where} of {spec.name} has no such layer\n"
                    f"  value: {option_name('layer')} {layer}\n  {_to(len(counts))} would work"
                )
        for layer in range(len(counts)) if layers is None else layers:
            count = counts[layer]
            for head in heads or ():
                if count is not None and head >= count:
                    raise UserError(
                        f"layer {layer} of {where} of {spec.name} has no such head\n"
                        f"  value: {option_name('head')} {head}\n  {_to(count)} would work"
                    )
    wanted = {name: range(len(counts)) if layers is None else layers for name, counts in chosen.items()}
    return Choice(wanted, heads)


def heads_by_layer(spec: Model) -> dict[StackName, list[int | None]]:
    """How many heads each layer of each stack has; None where an attention's kind has no ``heads``."""
    found: dict[StackName, list[int | None]] = {name: _heads(stack) for name, stack in spec.stacks()}
    if spec.architecture == "encoder-decoder" and spec.decoder is not None:
        found["cross"] = _heads(spec.decoder, cross=True)
    return found


def _heads(stack: Stack, *, cross: bool = False) -> list[int | None]:
    blocks = stack.layer_blocks()
    attentions = [(cross and block.cross_attention) or block.attention for block in blocks]
    return [getattr(attention, "heads", None) for attention in attentions]


def _to(count: int) -> str:
    return "0" if count == 1 else f"0 to {count - 1}"
