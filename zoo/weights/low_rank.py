"""The change of a matrix by the product of two smaller ones (LoRA: Hu et al., 2021), and the changed matrix."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor

from zoo.weights.adapters import SETTINGS
from zoo.weights.source import WeightError
from zoo.weights.stacked_lora import StackedLowRank
from zoo.weights.stored import ComputedTensor, StoredTensor


@dataclass(frozen=True)
class LowRank:
    """The change of one matrix: ``scale`` x up x down; ``up``: out x rank, ``down``: rank x in.

    ``magnitude``: the length of each row of the changed matrix (DoRA: Liu et al., 2024). ``transposed``: whether the base stores the
    matrix as in x out.
    """

    down: StoredTensor
    up: StoredTensor
    scale: float
    magnitude: StoredTensor | None = None
    transposed: bool = False

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the stored matrix that it changes."""
        sizes = (self.up.shape[0], self.down.shape[1])
        return sizes[::-1] if self.transposed else sizes

    def factors(self) -> tuple[Tensor, Tensor]:
        """The two factors of the change, with the scale, in float32: rows x rank and rank x columns, as the base stores it."""
        down, up = self.down.read().float(), self.scale * self.up.read().float()
        return (down.T, up.T) if self.transposed else (up, down)

    def applied(self, matrix: Tensor) -> Tensor:
        """The changed matrix, in float32, as the base stores it."""
        matrix = self._summed(matrix)
        if self.magnitude is not None:
            matrix = matrix * (self.magnitude.read().float().reshape(-1) / matrix.norm(dim=1))[:, None]
        return matrix.T.contiguous() if self.transposed else matrix

    def _summed(self, matrix: Tensor) -> Tensor:
        """The sum of the matrix and the product, out x in."""
        matrix = matrix.float().T if self.transposed else matrix.float()
        return matrix + self.scale * (self.up.read().float() @ self.down.read().float())

    def empty_row(self, matrix: Tensor) -> int | None:
        """The first row of length 0, by which DoRA divides; None if there is none."""
        if self.magnitude is None:
            return None
        rows = (self._summed(matrix).norm(dim=1) == 0).nonzero()
        return int(rows[0]) if len(rows) else None


@dataclass(frozen=True)
class MergedTensor(ComputedTensor):
    """A stored matrix with the change of an adapter."""

    change: LowRank | StackedLowRank

    def read(self) -> Tensor:
        """The values.  Raises as the matrix's and the adapter's."""
        return self.change.applied(self.matrix.read())

    def too_large(self) -> WeightError:
        """The error for a change that leaves values which are NaN or infinite."""
        adapter = self.change.down
        row = self.change.empty_row(self.matrix.read()) if isinstance(self.change, LowRank) else None
        if row is not None:
            return WeightError(
                f"{adapter.path}: DoRA scales row {row} of {self.name} to a magnitude, but the row with its change is 0 and has no "
                "direction\n  Train the adapter again with use_dora false, or leave the module out of target_modules."
            )
        return WeightError(
            f"{adapter.path}: {adapter.name} changes {self.name} to values that are NaN or infinite\n"
            f"  value: a factor of {self.change.scale:g}\n  Lower lora_alpha in {SETTINGS}, or train the adapter again."
        )
