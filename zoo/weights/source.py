"""What every source of weights gives."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol

from torch import Tensor

from specs.errors import UserError


class WeightError(UserError):
    """Weights that are missing, truncated, of the wrong shape, or of no known format."""


class WeightSource(Protocol):
    """The weights of a model by parameter name."""

    description: str

    def pieces(self, name: str) -> Iterator[Tensor]:
        """A parameter's values in row-major order, in consecutive flat pieces, so that none need be held whole.

        Raises :class:`WeightError`, naming the parameter, when it cannot be read.
        """
        ...
