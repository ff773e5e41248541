"""Values by module path, stored once for all layers of a kind."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import TypeVar

Value = TypeVar("Value")
Other = TypeVar("Other")


class Spread(Mapping[str, Value]):
    """A mapping from every module's path that stores each value once.

    ``parts``: the values of a model with one layer of each kind; ``kinds``: the layers that each of its layers represents,
    such as 0, 2 and 4 for ``decoder.blocks.0``.
    """

    def __init__(self, parts: Mapping[str, Value], kinds: Mapping[str, Sequence[int]]) -> None:
        self._parts, self._kinds = parts, kinds

    def groups(self) -> Iterator[tuple[list[str], Value]]:
        """Each value with all its paths."""
        return ((self._places(path), value) for path, value in self._parts.items())

    def counts(self) -> Iterator[tuple[Value, int]]:
        """Each value with the number of its paths."""
        return ((value, self._count(path)) for path, value in self._parts.items())

    def mapped(self, change: Callable[[Value], Other]) -> Spread[Other]:
        """The same paths with other values."""
        return Spread({path: change(value) for path, value in self._parts.items()}, self._kinds)

    def __getitem__(self, path: str) -> Value:
        layer, inner = _split(path)
        if layer not in self._kind_of:
            return self._parts[path]
        return self._parts[f"{self._kind_of[layer]}{inner}"]

    def __iter__(self) -> Iterator[str]:
        return (full_path for path in self._parts for full_path in self._places(path))

    def __len__(self) -> int:
        return sum(map(self._count, self._parts))

    @cached_property
    def _kind_of(self) -> dict[str, str]:
        """For each layer, the layer that represents it."""
        return {layer: kind for kind in self._kinds for layer in self._places(kind)}

    def _count(self, path: str) -> int:
        kind, _ = _split(path)
        return len(self._kinds[kind]) if kind in self._kinds else 1

    def _places(self, path: str) -> list[str]:
        kind, inner = _split(path)
        if kind not in self._kinds:
            return [path]
        stack = kind.rpartition(".")[0]
        return [f"{stack}.{layer}{inner}" for layer in self._kinds[kind]]


def _split(path: str) -> tuple[str, str]:
    """The path of a layer and the rest, such as ``.attention``; a path outside layers is returned whole."""
    names = path.split(".")
    layer = ".".join(names[:3])
    return layer, path[len(layer) :]
