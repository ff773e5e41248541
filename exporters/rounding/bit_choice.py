"""Mixed precision: the choice of groups of matrices that get more bits within a size."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from zoo.weights.blocks import Blocks

HALF = 16
"""The bits of a matrix without blocks: float16."""

Key = tuple[str, ...]
"""The names of the weights of a group."""


@dataclass(frozen=True)
class Form:
    """A storage format of a group of matrices: their blocks (None: float16), and their bytes, scales included."""

    blocks: Blocks | None
    bytes: int

    @property
    def bits(self) -> int:
        """The bits per value, without scales."""
        return HALF if self.blocks is None else self.blocks.bits


@dataclass(frozen=True)
class Group:
    """Matrices stored in the same format, because they form one product or share a table, and their two possible forms.

    ``high`` is None if there is no choice.
    """

    weights: Key
    low: Form
    high: Form | None

    @property
    def name(self) -> str:
        """The path of the modules: ``decoder.blocks.3.attention.query, key, value``."""
        paths = [weight.removesuffix(".weight").rpartition(".") for weight in self.weights]
        if len({parent for parent, _, _ in paths}) > 1:
            return ", ".join("".join(path) for path in paths)
        return "".join(paths[0][:2]) + ", ".join(leaf for _, _, leaf in paths)


@dataclass(frozen=True)
class BitChoice:
    """The chosen form of a group, whether it has more bits than the precision, and the cost of its low form alone (None: not
    measured)."""

    group: Group
    form: Form
    raised: bool
    cost: float | None


def choose(
    groups: Sequence[Group], costs: Mapping[Key, float], fits: Callable[[Sequence[Group]], bool]
) -> list[Group]:
    """Choose the groups that get their high form, by cost saved per byte, until the size is used up."""
    raised: list[Group] = []

    def gain(group: Group) -> float:
        assert group.high is not None
        return costs[group.weights] / max(1, group.high.bytes - group.low.bytes)

    for group in sorted((group for group in groups if group.high is not None), key=gain, reverse=True):
        if costs[group.weights] > 0 and fits([*raised, group]):
            raised.append(group)
    return raised
