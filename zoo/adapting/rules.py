"""How a tensor of a checkpoint becomes one of a variant: each rule has a text, and what it computes.

Shapes: heads G, head width K, vocabulary V, width D.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

Drawn = Callable[[], Tensor]
"""Draws the whole tensor of the variant by the spec's recipe."""


@dataclass(frozen=True)
class Derivation:
    """``apply(x, drawn)`` gives the values of the variant's tensor from the source's values, in any shape of as many values."""

    text: str
    apply: Callable[[Tensor, Drawn], Tensor]


COPIED = Derivation("copied", lambda x, drawn: x)


def heads(source: int, wanted: int, width: int) -> Derivation | None:
    """Key or value heads, (G K) ...: means of neighbours (Ainslie et al., 2023), or each repeated; None if neither divides."""
    if source == wanted:
        return COPIED
    if source % wanted == 0:
        size = source // wanted

        def mean(x: Tensor, drawn: Drawn) -> Tensor:
            return x.reshape(wanted, size, width, -1).mean(1)

        return Derivation(f"mean of {size} heads each", mean)
    if wanted % source == 0:
        times = wanted // source

        def repeat(x: Tensor, drawn: Drawn) -> Tensor:
            return x.reshape(source, width, -1).repeat_interleave(times, 0)

        return Derivation(f"each head repeated {times} times", repeat)
    return None


def rows(source: int, wanted: int, dim: int = 0) -> Derivation:
    """The entries of a vocabulary along ``dim``: the first ones, or all and then their mean (Hewitt, 2021)."""
    if wanted <= source:
        return Derivation(f"first {wanted:,} of {source:,} tokens", lambda x, drawn: x.narrow(dim, 0, wanted))

    def grow(x: Tensor, drawn: Drawn) -> Tensor:
        mean = x.mean(dim, keepdim=True)
        return torch.cat((x, mean.repeat_interleave(wanted - source, dim)), dim)

    return Derivation(f"copied; {wanted - source:,} new tokens are the mean of all", grow)


def position_rows(source: int, wanted: int, offset: int) -> Derivation:
    """A table of positions after ``offset`` other rows: the first ones, or all again and again (Beltagy et al., 2020)."""
    if wanted <= source:
        return Derivation(
            f"first {wanted:,} of {source:,} positions", lambda x, drawn: x.narrow(0, 0, wanted + offset)
        )

    def again(x: Tensor, drawn: Drawn) -> Tensor:
        table = x[offset:]
        times = -(-wanted // source)
        return torch.cat((x[:offset], table.repeat(times, 1)[:wanted]))

    return Derivation(f"{source:,} positions repeated to {wanted:,}", again)


def patch_rows(source: int, wanted: int, before: int) -> Derivation:
    """A table of ``before`` tokens and the positions of source x source patches, interpolated (Dosovitskiy et al., 2021)."""

    def interpolate(x: Tensor, drawn: Drawn) -> Tensor:
        grid = x[before:].reshape(1, source, source, -1).permute(0, 3, 1, 2)  # 1 D source source
        grid = F.interpolate(grid, size=(wanted, wanted), mode="bicubic", align_corners=False)
        return torch.cat((x[:before], grid.flatten(2)[0].transpose(0, 1)))

    return Derivation(f"interpolated from {source} x {source} to {wanted} x {wanted} patches", interpolate)


def wider(source: int, wanted: int, dim: int, *, zeros: bool) -> Derivation:
    """A hidden layer with further neurons: their inputs are drawn, and their outputs are zeros, so that they change nothing."""

    def grow(x: Tensor, drawn: Drawn) -> Tensor:
        further = drawn().narrow(dim, source, wanted - source)
        return torch.cat((x, torch.zeros_like(further) if zeros else further), dim)

    what = "zeros" if zeros else "drawn"
    return Derivation(f"copied; {wanted - source:,} new neurons are {what}", grow)


def upcycled(experts: int) -> Derivation:
    """The matrix of a feed-forward for every expert (Komatsuzaki et al., 2023)."""
    return Derivation(f"the same for {experts} experts", lambda x, drawn: x.expand(experts, *x.shape))


def shifted(by: float) -> Derivation:
    """The weight of a norm that adds 1 to it, from one that does not, or the reverse."""
    return Derivation(f"copied {by:+g}, for unit_offset", lambda x, drawn: x + by)
