"""How stored tensors relate to parameters.  Each can be undone, and gives views where it can."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Protocol

import torch
from torch import Tensor

Shape = tuple[int, ...]


class Transform(Protocol):
    """From one stored tensor to one or more parameters, and back.

    ``by_rows``: parameters consist of whole rows of the stored tensor, in any order.
    """

    @property
    def by_rows(self) -> bool: ...

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

    by_rows: ClassVar[bool] = True

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

    by_rows: ClassVar[bool] = True

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

    @property
    def by_rows(self) -> bool:
        return self.axis == 0

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
    by_rows: ClassVar[bool] = False

    def stored_shape(self, shapes: Sequence[Shape]) -> Shape:
        *outer, rows, columns = self.inner.stored_shape(shapes)
        return (*outer, columns, rows)

    def split(self, stored: Tensor, shapes: Sequence[Shape]) -> Sequence[Tensor]:
        return self.inner.split(stored.mT, shapes)

    def join(self, parts: Sequence[Tensor]) -> Tensor:
        return self.inner.join(parts).mT


@dataclass(frozen=True)
class Grouped:
    """Queries, keys and values as one, group after group of query heads that share a key: in each the rows of its query
    heads, then those of its key, then those of its value (GPT-NeoX, BLOOM: one query head to a group; Falcon)."""

    groups: int
    by_rows: ClassVar[bool] = True

    def stored_shape(self, shapes: Sequence[Shape]) -> Shape:
        return STACKED.stored_shape(shapes)

    def split(self, stored: Tensor, shapes: Sequence[Shape]) -> Sequence[Tensor]:
        rows = [shape[0] // self.groups for shape in shapes]
        parts = stored.unflatten(0, (self.groups, -1)).split(rows, dim=1)
        return [part.flatten(0, 1) for part in parts]

    def join(self, parts: Sequence[Tensor]) -> Tensor:
        return torch.cat([part.unflatten(0, (self.groups, -1)) for part in parts], dim=1).flatten(0, 1)


@dataclass(frozen=True)
class Unsqueezed:
    """Stored with one more axis, of length 1, before its own (ViT's positions)."""

    by_rows: ClassVar[bool] = False

    def stored_shape(self, shapes: Sequence[Shape]) -> Shape:
        return (1, *shapes[0])

    def split(self, stored: Tensor, shapes: Sequence[Shape]) -> Sequence[Tensor]:
        return (stored[0],)

    def join(self, parts: Sequence[Tensor]) -> Tensor:
        return parts[0][None]
