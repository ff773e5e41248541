"""A checkpoint as a source of weights."""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path

import torch
from torch import Tensor, nn

from specs.model import Model
from zoo.checkpoints.family import Family
from zoo.checkpoints.matching import match
from zoo.weights.files import TensorFiles
from zoo.weights.source import WeightError
from zoo.weights.stored import Stored

PIECE = 2**22
"""Values converted at a time."""


class CheckpointWeights:
    """The weights of a model from the files of a checkpoint, whose names and layouts are a family's.

    ``ignored`` names the tensors that the spec leaves out, such as another head's.  Raises :class:`WeightError` at once
    when any tensor is missing, left over, or of the wrong shape or type.
    """

    def __init__(
        self,
        files: TensorFiles,
        family: Family,
        model: nn.Module,
        spec: Model,
        dtype: torch.dtype = torch.float32,
    ) -> None:
        found = match(files, family, model, spec)
        self.family = family
        self.dtype = dtype
        self.ignored: tuple[str, ...] = tuple(found.ignored)
        self._found, self._fixed = found.found, found.fixed
        self.description = f"{files.path} ({family.name} names)"
        if self.ignored:
            more = ", ..." if len(self.ignored) > 3 else ""
            self.description += f", {len(self.ignored)} ignored: {', '.join(self.ignored[:3])}{more}"

    def pieces(self, name: str) -> Iterator[Tensor]:
        """A parameter's values in row-major order, in flat pieces: one on mapped pages where the file has them so."""
        if name in self._fixed:
            yield self._fixed[name].reshape(-1).to(self.dtype)
            return
        found = self._found[name]
        for row, stored in enumerate(found.stored):
            values = found.values(row)
            if values.dtype == self.dtype and values.is_contiguous():
                yield self._finite(values.view(-1), stored)
                continue
            count, step = len(values), max(1, PIECE // values[0].numel())
            for start in range(0, count, step):
                if found.mapped:  # anew, so that pages already read are given back
                    values = found.values(row)
                piece = values[start : start + step].contiguous().to(self.dtype).view(-1)
                yield self._finite(piece, stored)

    @staticmethod
    def _finite(values: Tensor, stored: Stored) -> Tensor:
        if all(map(math.isfinite, values.aminmax())):  # NaN is its own minimum
            return values
        count = int((~torch.isfinite(values)).sum())
        raise WeightError(
            f"{stored.path}: {stored.name} has NaN or infinite values ({count:,} of {values.numel():,} looked at)\n"
            "  take a checkpoint from before they appeared"
        )

    def raw(self, name: str) -> tuple[Path, int, int] | None:
        """File, offset and number of bytes where a parameter's values stand as ``pieces`` gives them, or None."""
        if name in self._fixed:
            return None
        found = self._found[name]
        if found.slot.field or found.stored[0].place is None:
            return None
        (origin,) = found.stored
        offset, nbytes = found.stored[0].place
        stored = origin.read()
        values = found.slot.transform.split(stored, found.shapes)[found.slot.index]
        start = values.data_ptr() - stored.data_ptr()
        inside = 0 <= start <= nbytes - values.nbytes
        if values.dtype != self.dtype or not values.is_contiguous() or not inside:
            return None
        return origin.path, offset + start, values.nbytes
