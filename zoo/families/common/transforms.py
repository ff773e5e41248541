"""Transforms between stored tensors and parameters: reversible, and views where possible.

Families name transforms without using tensors, so torch is imported only when a transform runs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Protocol

from specs.base.errors import UserError

if TYPE_CHECKING:
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
    """One parameter, stored unchanged."""

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
    """Parameters concatenated along an axis, such as fused queries, keys and values."""

    axis: int = 0

    @property
    def by_rows(self) -> bool:
        return self.axis == 0

    def stored_shape(self, shapes: Sequence[Shape]) -> Shape:
        first, axis = shapes[0], self.axis
        return (*first[:axis], sum(shape[axis] for shape in shapes), *first[axis + 1 :])

    def split(self, stored: Tensor, shapes: Sequence[Shape]) -> Sequence[Tensor]:
        return stored.split([shape[self.axis] for shape in shapes], self.axis)

    def join(self, parts: Sequence[Tensor]) -> Tensor:
        import torch

        return torch.cat(list(parts), self.axis)


STACKED = Stacked()


@dataclass(frozen=True)
class Interleaved:
    """Parameters interleaved along an axis, such as the gate and up of GPT-OSS."""

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
        import torch

        return torch.stack(list(parts), self.axis + 1).flatten(self.axis, self.axis + 1)


@dataclass(frozen=True)
class Transposed:
    """A matrix, or one per expert, stored d_in x d_out (GPT-2's Conv1D); ``inner`` applies after transposition."""

    inner: Transform = SAME
    by_rows: ClassVar[bool] = False

    @property
    def by_columns(self) -> bool:
        """Whether the matrices of all experts consist of whole columns of the stored tensor, in any order."""
        return self.inner in (SAME, Stacked(1), Interleaved(1))

    def stored_shape(self, shapes: Sequence[Shape]) -> Shape:
        *outer, rows, columns = self.inner.stored_shape(shapes)
        return (*outer, columns, rows)

    def split(self, stored: Tensor, shapes: Sequence[Shape]) -> Sequence[Tensor]:
        return self.inner.split(stored.mT, shapes)

    def join(self, parts: Sequence[Tensor]) -> Tensor:
        return self.inner.join(parts).mT


@dataclass(frozen=True)
class Grouped:
    """Fused queries, keys and values, group by group of query heads with a common key: in each group the rows of its query
    heads, then of its key, then of its value (Falcon; GPT-NeoX and BLOOM with one query head per group)."""

    groups: int
    by_rows: ClassVar[bool] = True

    def stored_shape(self, shapes: Sequence[Shape]) -> Shape:
        return STACKED.stored_shape(shapes)

    def split(self, stored: Tensor, shapes: Sequence[Shape]) -> Sequence[Tensor]:
        rows = [shape[0] // self.groups for shape in shapes]
        parts = stored.unflatten(0, (self.groups, -1)).split(rows, dim=1)
        return [part.flatten(0, 1) for part in parts]

    def join(self, parts: Sequence[Tensor]) -> Tensor:
        import torch

        return torch.cat([part.unflatten(0, (self.groups, -1)) for part in parts], dim=1).flatten(0, 1)


@dataclass(frozen=True)
class GroupedByKey:
    """Two parameters, queries, keys and values stacked and gates, stored key head by key head: in each the rows of its query,
    of its key, of its values, and of the gates of these (Qwen3-Next)."""

    groups: int
    by_rows: ClassVar[bool] = True

    def stored_shape(self, shapes: Sequence[Shape]) -> Shape:
        return STACKED.stored_shape(shapes)

    def split(self, stored: Tensor, shapes: Sequence[Shape]) -> Sequence[Tensor]:
        import torch

        keys, values = self._rows(shapes[0][0], shapes[1][0])
        heads = stored.unflatten(0, (self.groups, -1)).split([keys, keys, values, values], 1)
        *joined, gate = (part.flatten(0, 1) for part in heads)
        return [torch.cat(joined), gate]

    def join(self, parts: Sequence[Tensor]) -> Tensor:
        import torch

        joined, gate = parts
        keys, values = (self.groups * rows for rows in self._rows(len(joined), len(gate)))
        pieces = (*joined.split([keys, keys, values]), gate)
        return torch.cat([part.unflatten(0, (self.groups, -1)) for part in pieces], 1).flatten(0, 1)

    def _rows(self, joined: int, gates: int) -> tuple[int, int]:
        """The rows of a key and of the values of one key head."""
        return (joined - gates) // (2 * self.groups), gates // self.groups


@dataclass(frozen=True)
class PerHead:
    """One number per head, stored as 1 1 H 1 (Kimi Linear)."""

    by_rows: ClassVar[bool] = False

    def stored_shape(self, shapes: Sequence[Shape]) -> Shape:
        return (1, 1, *shapes[0], 1)

    def split(self, stored: Tensor, shapes: Sequence[Shape]) -> Sequence[Tensor]:
        return (stored[0, 0, :, 0],)

    def join(self, parts: Sequence[Tensor]) -> Tensor:
        return parts[0][None, None, :, None]


@dataclass(frozen=True)
class Unsqueezed:
    """One parameter, stored with an additional leading axis of length 1 (ViT's positions)."""

    by_rows: ClassVar[bool] = False

    def stored_shape(self, shapes: Sequence[Shape]) -> Shape:
        return (1, *shapes[0])

    def split(self, stored: Tensor, shapes: Sequence[Shape]) -> Sequence[Tensor]:
        return (stored[0],)

    def join(self, parts: Sequence[Tensor]) -> Tensor:
        return parts[0][None]


@dataclass(frozen=True)
class Squeezed:
    """One parameter, stored without its leading axis of length 1 (CLIP's class token and scale)."""

    by_rows: ClassVar[bool] = False

    def stored_shape(self, shapes: Sequence[Shape]) -> Shape:
        return shapes[0][1:]

    def split(self, stored: Tensor, shapes: Sequence[Shape]) -> Sequence[Tensor]:
        return (stored[None],)

    def join(self, parts: Sequence[Tensor]) -> Tensor:
        return parts[0][0]


@dataclass(frozen=True)
class Depthwise:
    """The kernels of depthwise convolutions, D W each, stored one after another as D' 1 W."""

    by_rows: ClassVar[bool] = True

    def stored_shape(self, shapes: Sequence[Shape]) -> Shape:
        channels, width = STACKED.stored_shape(shapes)
        return (channels, 1, width)

    def split(self, stored: Tensor, shapes: Sequence[Shape]) -> Sequence[Tensor]:
        return STACKED.split(stored[:, 0], shapes)

    def join(self, parts: Sequence[Tensor]) -> Tensor:
        return STACKED.join(parts)[:, None]


@dataclass(frozen=True)
class Pointwise:
    """A matrix, stored as a convolution over one vector: D' D as D' D 1."""

    by_rows: ClassVar[bool] = True

    def stored_shape(self, shapes: Sequence[Shape]) -> Shape:
        return (*shapes[0], 1)

    def split(self, stored: Tensor, shapes: Sequence[Shape]) -> Sequence[Tensor]:
        return (stored[..., 0],)

    def join(self, parts: Sequence[Tensor]) -> Tensor:
        return parts[0][..., None]


@dataclass(frozen=True)
class Unfolded:
    """A matrix, D x the product of ``sizes``, stored as D x sizes: a convolution whose kernels do not overlap."""

    sizes: tuple[int, ...]
    by_rows: ClassVar[bool] = True

    def stored_shape(self, shapes: Sequence[Shape]) -> Shape:
        return (shapes[0][0], *self.sizes)

    def split(self, stored: Tensor, shapes: Sequence[Shape]) -> Sequence[Tensor]:
        return (stored.flatten(1),)

    def join(self, parts: Sequence[Tensor]) -> Tensor:
        return parts[0].unflatten(1, self.sizes)


@dataclass(frozen=True)
class TransposedKernels:
    """A matrix, 4 D' x D, of four vectors of each, row by row of a square; stored as a transposed convolution whose kernels do not
    overlap: D x D' x 2 x 2."""

    by_rows: ClassVar[bool] = False

    def stored_shape(self, shapes: Sequence[Shape]) -> Shape:
        rows, columns = shapes[0]
        return (columns, rows // 4, 2, 2)

    def split(self, stored: Tensor, shapes: Sequence[Shape]) -> Sequence[Tensor]:
        return (stored.permute(2, 3, 1, 0).flatten(0, 2),)

    def join(self, parts: Sequence[Tensor]) -> Tensor:
        return parts[0].unflatten(0, (2, 2, -1)).permute(3, 2, 0, 1)


@dataclass(frozen=True)
class Zeros:
    """One parameter, which must be zeros; ``rule`` and ``remedy`` say why."""

    rule: str
    remedy: str
    by_rows: ClassVar[bool] = False

    def stored_shape(self, shapes: Sequence[Shape]) -> Shape:
        return shapes[0]

    def split(self, stored: Tensor, shapes: Sequence[Shape]) -> Sequence[Tensor]:
        if not stored.is_meta and stored.any():
            raise UserError(f"{self.rule}\n  value: {stored.tolist()}\n  {self.remedy}")
        return (stored.clone(),)  # a copy, so that values are read here

    def join(self, parts: Sequence[Tensor]) -> Tensor:
        return parts[0]


@dataclass(frozen=True)
class Concatenated:
    """The matrices of a number of experts, one below the other; ``inner`` applies to all of them (DBRX)."""

    inner: Transform = SAME
    by_rows: ClassVar[bool] = False

    def stored_shape(self, shapes: Sequence[Shape]) -> Shape:
        experts, rows, columns = self.inner.stored_shape(shapes)
        return (experts * rows, columns)

    def split(self, stored: Tensor, shapes: Sequence[Shape]) -> Sequence[Tensor]:
        return self.inner.split(stored.unflatten(0, (shapes[0][0], -1)), shapes)

    def join(self, parts: Sequence[Tensor]) -> Tensor:
        return self.inner.join(parts).flatten(0, 1)
