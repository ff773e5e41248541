"""Which layers of a checkpoint become the layers of a variant."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from specs.base.errors import UserError, option_name
from specs.base.suggest import suggestion
from specs.model.model import Model
from specs.model.stack import MAX_LAYERS, Stack

LayerSources = tuple[tuple[int, ...], ...]
"""For each layer of the variant, the layers of the source that it is the mean of; mostly one."""

_STEP = re.compile(r"(\d{1,9})-(\d{1,9})|\d{1,9}(\+\d{1,9})*")


def evenly_spaced(depth: int, wanted: int) -> LayerSources:
    """Return ``wanted`` of ``depth`` layers: spread from the first to the last, or, for more layers, each repeated in place."""
    if wanted > depth:
        return tuple((layer * depth // wanted,) for layer in range(wanted))
    span = max(wanted - 1, 1)
    return tuple(((2 * layer * (depth - 1) + span) // (2 * span),) for layer in range(wanted))


def stack_sources(source: Model, variant: Model) -> dict[str, str]:
    """Return the stack of the source that each stack of the variant is made of: the stack of its name, or else the only one.

    Raises :class:`UserError` where there is neither, or where the widths of the two differ.
    """
    known: dict[str, Stack] = dict(source.stacks())
    origins: dict[str, str] = {}
    for name, stack in variant.stacks():
        if name not in known and len(known) > 1:
            raise UserError(
                f"{variant.name}: {name} has no counterpart among the stacks of the weights ({', '.join(known)})\n"
                f"  Give the spec the architecture of the weights, {source.architecture}."
            )
        origin = name if name in known else next(iter(known))
        width, stored = variant.width_of(stack), source.width_of(known[origin])
        if width != stored:
            raise UserError(
                f"{variant.name}: d_model of {name} must equal the width of the weights, {stored}, not {width}: "
                f"no tensor of another width can be derived\n  Set d_model: {stored}, or draw all weights."
            )
        origins[name] = origin
    return origins


def layer_sources(
    source: Model, variant: Model, stacks: Mapping[str, str], texts: Sequence[str]
) -> dict[str, LayerSources]:
    """Return, for each stack of the variant, the layers of the source that its layers are made of.

    ``texts`` are lists such as ``0-23,8-31`` (repeated), ``0,2,4`` (dropped) or ``0+1,2+3`` (averaged), with a stack's name in
    front where there are several: ``decoder=0-5``. Unstated stacks take evenly spaced layers. Raises :class:`UserError`.
    """
    wanted = {str(name): stack.depth for name, stack in variant.stacks()}
    depths = {str(name): stack.depth for name, stack in source.stacks()}
    lists = dict(_by_stack(texts, list(wanted)))
    return {
        name: _checked(lists[name], name, depths[stacks[name]], depth)
        if name in lists
        else evenly_spaced(depths[stacks[name]], depth)
        for name, depth in wanted.items()
    }


def _by_stack(texts: Sequence[str], stacks: list[str]) -> Iterator[tuple[str, str]]:
    for text in texts:
        before, equals, steps = text.partition("=")
        name = before if equals else stacks[0]
        if name not in stacks:
            raise UserError(
                f"{option_name('layers')} {text!r} names an unknown stack\n  {suggestion(name, stacks)}"
            )
        if not equals and len(stacks) > 1:
            raise UserError(
                f"{option_name('layers')} {text!r} must name its stack, because the spec has {' and '.join(stacks)}\n"
                f"  Write {stacks[-1]}={text}."
            )
        yield name, steps if equals else text


def _checked(text: str, stack: str, depth: int, wanted: int) -> LayerSources:
    layers: list[tuple[int, ...]] = []
    for step in text.split(","):
        fits = _STEP.fullmatch(step.strip())
        if fits is None:
            raise UserError(
                f"{option_name('layers')} of {stack}: {step!r} is neither a layer, a range nor a sum\n"
                "  Write layers as 4, ranges as 0-23, and means as 0+1, with commas between them."
            )
        named = [int(number) for number in re.split(r"[-+]", fits[0])]
        if max(named) >= depth:
            raise UserError(
                f"{option_name('layers')} of {stack}: layer {max(named)} is beyond the {depth} layers of the weights\n"
                f"  Use 0 to {depth - 1}."
            )
        if fits[1] is not None:
            first, last = named
            if last < first:
                raise UserError(
                    f"{option_name('layers')} of {stack}: the range {fits[0]} is empty\n  Write {last}-{first}."
                )
            layers += [(layer,) for layer in range(first, last + 1)]
        else:
            layers.append(tuple(named))
        if len(layers) > MAX_LAYERS:
            raise UserError(
                f"{option_name('layers')} of {stack} must list at most {MAX_LAYERS:,} layers\n  List {wanted}."
            )
    if len(layers) != wanted:
        raise UserError(
            f"{option_name('layers')} of {stack}: {len(layers)} layers are listed, and the spec has {wanted}\n"
            f"  List {wanted}, or set {stack}.layers to {len(layers)}."
        )
    return tuple(layers)
