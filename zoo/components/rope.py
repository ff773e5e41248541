"""Rotary positions."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from specs.base.errors import UserError
from specs.kinds.rope import Rope as RopeSpec
from zoo import functional
from zoo.components.position import Position
from zoo.components.rope_frequencies import Frequencies, rope_frequencies
from zoo.context import BuildContext
from zoo.core.precision import wide
from zoo.registry import builds


@builds(RopeSpec)
class Rope(Position):
    """Rotation of queries and keys by angles proportional to the position.

    Stored frequencies are a buffer, R radians per position.
    """

    stored: Tensor | None

    def __init__(self, spec: RopeSpec, context: BuildContext) -> None:
        super().__init__(spec, context)
        self.interleaved = spec.layout == "interleaved"
        self.dimensions = spec.dimensions
        self.spec, self.context_length, self.fixed_length = spec, context.context_length, context.fixed_length
        self.register_buffer("stored", None)
        self._prepared: dict[int, tuple[Frequencies, float]] = {}  # by width

    def frequencies(self, width: int) -> tuple[Frequencies, float]:
        """The frequencies of the rotated pairs for queries and keys of a width, and the amplitude of cos and sin."""
        if width not in self._prepared:
            self.prepare(width)
        return self._prepared[width]

    def prepare(self, width: int) -> None:
        self._prepared[width] = rope_frequencies(
            self.spec, self.context_length, self.dimensions or width, fixed_length=self.fixed_length
        )
        if self.spec.frequencies != "stored":
            return
        pairs = (self.dimensions or width) // 2
        if self.stored is not None and len(self.stored) != pairs:
            raise UserError(
                "position.frequencies: must be computed where heads have several widths, which need frequencies each\n"
                f"  value: stored, for {len(self.stored)} and {pairs} pairs\n  Use computed."
            )
        self.stored = torch.empty(pairs)

    def _apply(self, fn: Callable[[Tensor], Tensor], recurse: bool = True) -> Rope:
        """Move stored frequencies, which stay in float32 in half precision: rounding them turns distant tokens."""

        def moved(tensor: Tensor) -> Tensor:
            other = fn(tensor)
            return other if other.itemsize >= tensor.itemsize else tensor.to(other.device)

        return super()._apply(moved, recurse)

    def fixed(self, leaf: str) -> Tensor | None:
        """The frequencies of theta, for weights that hold none."""
        ((frequencies, _),) = self._prepared.values()
        return torch.tensor(frequencies, device="cpu") if leaf == "stored" else None

    def rotate(self, x: Tensor, positions: Tensor, width: int) -> Tensor:
        return x if self.spec.rotates_input else self._rotated(x, positions, width)

    def rotate_input(self, x: Tensor, positions: Tensor, width: int) -> Tensor:
        pieces = x.unflatten(-1, (-1, width)).transpose(1, 2)  # B H T K
        return self._rotated(pieces, positions, width).transpose(1, 2).flatten(2)

    def _rotated(self, x: Tensor, positions: Tensor, width: int) -> Tensor:
        if self.spec.sections is not None and positions.ndim == 3:
            return self._rotate_by_axis(x, positions, width)
        frequencies, amplitude = self.frequencies(width)
        return functional.rotate(
            x,
            positions,
            self._now(frequencies, positions),
            amplitude=amplitude,
            dimensions=self.dimensions or width,
            interleaved=self.interleaved,
        )

    def _now(self, frequencies: Frequencies, positions: Tensor) -> tuple[float, ...] | Tensor:
        if self.stored is not None:
            return wide(self.stored)
        return frequencies if isinstance(frequencies, tuple) else frequencies(positions.amax() + 1)

    def _rotate_by_axis(self, x: Tensor, positions: Tensor, width: int) -> Tensor:
        """Each pair by the axis that it belongs to.  positions: frame, row and column, 3 B T."""
        assert self.spec.sections is not None
        frequencies, amplitude = self.frequencies(width)
        assert isinstance(frequencies, tuple)
        axes = self.spec.sections.axes()
        by_axis = tuple(
            tuple(frequency if own == axis else 0.0 for frequency, own in zip(frequencies, axes, strict=True))
            for axis in range(3)
        )
        turned = functional.angles_by_axis(positions, by_axis)  # B T R
        cos, sin = (turned.cos() * amplitude).to(x.dtype), (turned.sin() * amplitude).to(x.dtype)
        return functional.rotary_embedding(
            x, cos, sin, dimensions=self.dimensions or width, interleaved=self.interleaved
        )
