"""LoRA of parameters with three axes, such as stacked experts (``target_parameters`` of PEFT): a low-rank product per expert.

Shapes: experts E, rank of each R.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from torch import Tensor

from zoo.weights.stored import ComputedTensor, StoredTensor

Shape = tuple[int, ...]


@dataclass(frozen=True)
class Part(ComputedTensor):
    """The rows and columns of a stored matrix that belong to one expert, or to a part of it."""

    rows: slice
    columns: slice

    @property
    def shape(self) -> Shape:
        """The shape of the part."""
        sides = zip((self.rows, self.columns), self.matrix.shape, strict=True)
        return tuple(len(range(*part.indices(side))) for part, side in sides)

    def read(self) -> Tensor:
        """The values of the part."""
        return self.matrix.read()[self.rows, self.columns]


@dataclass(frozen=True)
class StackedLowRank:
    """The change of a stacked parameter: ``scale`` x up x down per expert; ``down``: (E R) x in, ``up``: out x (R E).

    ``turned``: whether the base stores it as E x in x out, not E x out x in.
    """

    down: StoredTensor
    up: StoredTensor
    scale: float
    experts: int
    turned: bool

    def factors(self) -> tuple[Tensor, Tensor]:
        """The two factors of the change of each expert, with the scale, in float32: E rows R and E R columns, as the base stores it."""
        down = self.down.read().float().unflatten(0, (self.experts, -1))  # E R in
        up = self.scale * self.up.read().float().unflatten(1, (-1, self.experts)).permute(2, 0, 1)  # E out R
        return (down.mT, up.mT) if self.turned else (up, down)

    def applied(self, matrices: Tensor) -> Tensor:
        """The changed parameter, in float32, as the base stores it."""
        left, right = self.factors()
        return matrices.float() + left @ right

    def of_expert(self, expert: int, rows: slice) -> tuple[Part, Part]:
        """The matrices down and up of some rows of one expert."""
        rank = self.down.shape[0] // self.experts
        own = slice(expert * rank, (expert + 1) * rank)
        return Part(self.down, own, slice(None)), Part(self.up, rows, slice(expert, None, self.experts))


@dataclass(frozen=True)
class StackedChange:
    """The matrices of one change of a module with stacked experts, whose parameter their shapes tell.

    ``ranks`` and ``scales`` are those of each parameter that it may be, by name.
    """

    down: StoredTensor
    up: StoredTensor
    ranks: Mapping[str, int]
    scales: Mapping[str, float]

    def fits(self, leaf: str, shape: Shape) -> bool:
        """Whether it can change a parameter of a name and shape."""
        sides = self.up.shape[0], self.down.shape[1]
        rows = shape[0] * self.ranks.get(leaf, 0)
        return len(shape) == 3 and self.down.shape[0] == rows and shape[1:] in (sides, sides[::-1])

    def turned(self, shape: Shape) -> bool | None:
        """Whether a parameter of a shape that it fits is E x in x out; None where both sides are equal."""
        return None if shape[1] == shape[2] else shape[1] == self.down.shape[1]


def placed(
    module: str, changes: Sequence[StackedChange], shape_of: Callable[[str], Shape | None]
) -> Iterator[tuple[str, StackedLowRank | str]]:
    """Yield each parameter of a module that an adapter changes, with its change, or with the reason why it has none."""
    names = {leaf: f"{module}.{leaf}" for change in changes for leaf in change.ranks}
    shapes = {leaf: shape for leaf, name in names.items() if (shape := shape_of(name)) is not None}
    fitting = [[leaf for leaf, shape in shapes.items() if change.fits(leaf, shape)] for change in changes]
    orders = [
        change.turned(shapes[leaves[0]]) for change, leaves in zip(changes, fitting, strict=True) if leaves
    ]
    turned = next((way for way in orders if way is not None), None)
    for change, leaves in zip(changes, fitting, strict=True):
        if len(leaves) != 1 or sum(leaves == other for other in fitting) > 1 or turned is None:
            yield module, _why_not(change, shapes, leaves)
            continue
        (leaf,) = leaves
        yield (
            names[leaf],
            StackedLowRank(change.down, change.up, change.scales[leaf], shapes[leaf][0], turned),
        )


def _why_not(change: StackedChange, shapes: Mapping[str, Shape], leaves: Sequence[str]) -> str:
    ranks = " or ".join(str(rank) for rank in dict.fromkeys(change.ranks.values()))
    made = f"a change of rank {ranks} for experts of {change.up.shape[0]} x {change.down.shape[1]}, in {change.down.shape[0]} rows"
    if leaves:
        return f"{made}, which may be of several parameters, or of either order of their axes"
    held = ", ".join(f"{leaf} {' x '.join(map(str, shape))}" for leaf, shape in shapes.items())
    return f"{made}, and the base has {held}"
