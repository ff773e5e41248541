"""How stored tensors relate to parameters.  Each can be undone, and gives views where it can."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor

Shape = tuple[int, ...]


class Transform(Protocol):
    """From one stored tensor to one or more parameters, and back."""

    def stored_shape(self, shapes: Sequence[Shape]) -> Shape:
        """The shape of the stored tensor for parameters of these shapes."""
        ...

    def split(self, stored: Tensor, shapes: Sequence[Shape]) -> Sequence[Tensor]:
        """The parameters, of these shapes."""
        ...

    def join(self, parts: Sequence[Tensor]) -> Tensor:
        """The stored tensor."""
        ...


@dataclass(frozen=True)
class Same:
    """Stored as it is."""

    def stored_shape(self, shapes: Sequence[Shape]) -> Shape:
        return shapes[0]

    def split(self, stored: Tensor, shapes: Sequence[Shape]) -> Sequence[Tensor]:
        return (stored,)

    def join(self, parts: Sequence[Tensor]) -> Tensor:
        return parts[0]


SAME = Same()


@dataclass(frozen=True)
class Stacked:
    """Parameters end to end along their first dimension, such as fused queries, keys and values."""

    def stored_shape(self, shapes: Sequence[Shape]) -> Shape:
        return (sum(shape[0] for shape in shapes), *shapes[0][1:])

    def split(self, stored: Tensor, shapes: Sequence[Shape]) -> Sequence[Tensor]:
        return stored.split([shape[0] for shape in shapes])

    def join(self, parts: Sequence[Tensor]) -> Tensor:
        return torch.cat(list(parts))


STACKED = Stacked()


@dataclass(frozen=True)
class Interleaved:
    """Parameters that take turns along an axis, such as the gate and up of GPT-OSS."""

    axis: int

    def stored_shape(self, shapes: Sequence[Shape]) -> Shape:
        first, axis = shapes[0], self.axis
        return (*first[:axis], len(shapes) * first[axis], *first[axis + 1 :])

    def split(self, stored: Tensor, shapes: Sequence[Shape]) -> Sequence[Tensor]:
        return stored.unflatten(self.axis, (-1, len(shapes))).unbind(self.axis + 1)

    def join(self, parts: Sequence[Tensor]) -> Tensor:
        return torch.stack(list(parts), self.axis + 1).flatten(self.axis, self.axis + 1)


@dataclass(frozen=True)
class Transposed:
    """A matrix, or one per expert, stored d_in x d_out (GPT-2's Conv1D); ``inner`` applies to it once turned."""

    inner: Transform = SAME

    def stored_shape(self, shapes: Sequence[Shape]) -> Shape:
        *outer, rows, columns = self.inner.stored_shape(shapes)
        return (*outer, columns, rows)

    def split(self, stored: Tensor, shapes: Sequence[Shape]) -> Sequence[Tensor]:
        return self.inner.split(stored.mT, shapes)

    def join(self, parts: Sequence[Tensor]) -> Tensor:
        return self.inner.join(parts).mT


@dataclass(frozen=True)
class Unsqueezed:
    """Stored with one more axis, of length 1, before its own (ViT's positions)."""

    def stored_shape(self, shapes: Sequence[Shape]) -> Shape:
        return (1, *shapes[0])

    def split(self, stored: Tensor, shapes: Sequence[Shape]) -> Sequence[Tensor]:
        return (stored[0],)

    def join(self, parts: Sequence[Tensor]) -> Tensor:
        return parts[0][None]
