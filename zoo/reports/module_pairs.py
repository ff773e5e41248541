"""Differences between two built models, module by module."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from zoo.reports.parameters import ModuleParameters

Name = TypeVar("Name")
Flops = Mapping[str, int]
"""FLOPs of each module with its submodules, by path; the whole model has the empty path."""


@dataclass(frozen=True)
class ModulePair:
    """The modules of two models at one path, either of which may be missing, and the pairs of their submodules.

    Modules without weights are excluded. If both models have a single stack, the two form a pair whatever their names.
    ``flops`` of both include submodules; 0 for a missing module.
    """

    a: ModuleParameters | None
    b: ModuleParameters | None
    flops: tuple[int, int]
    children: tuple[ModulePair, ...]

    @property
    def module(self) -> ModuleParameters:
        """The first module, or the second if the first is missing."""
        module = self.a or self.b
        assert module is not None
        return module

    @property
    def differs_itself(self) -> bool:
        """Whether one is missing, or the kinds, own weights, owners of shared weights or own FLOPs differ."""
        a, b = self.a, self.b
        return (
            a is None
            or b is None
            or (a.kind, described(a)) != (b.kind, described(b))
            or self._computes_otherwise
        )

    @property
    def _computes_otherwise(self) -> bool:
        own = [self.flops[side] - sum(child.flops[side] for child in self.children) for side in (0, 1)]
        return own[0] != own[1]

    @property
    def differs(self) -> bool:
        """Whether the modules or their submodules differ."""
        return self.differs_itself or any(child.differs for child in self.children)

    @property
    def parameters(self) -> tuple[int, int]:
        """The parameters of both, submodules included; 0 for a missing module."""
        return self.a.parameters if self.a else 0, self.b.parameters if self.b else 0

    def walk(self) -> Iterator[ModulePair]:
        """This pair and the pairs within it, depth first; inside a module of only one model, only members of lists."""
        yield self
        for child in self.children:
            yield from child.walk()

    @property
    def look(self) -> tuple[Any, ...]:
        """A key that is equal for pairs with the same differences, whatever their paths."""
        sides = [side and (side.kind, tuple(described(side).items())) for side in (self.a, self.b)]
        inner = tuple((child.module.name, child.look) for child in self.children if child.differs)
        return (*sides, self.parameters, self.flops, inner)

    def as_dict(self) -> dict[str, Any]:
        """As JSON data, without submodules; null for a missing module."""
        sides = [
            module and {**module.as_dict(), "flops": flops}
            for module, flops in zip((self.a, self.b), self.flops, strict=True)
        ]
        return {"path": self.module.path, "a": sides[0], "b": sides[1]}


def pair(a: ModuleParameters, b: ModuleParameters, flops: tuple[Flops, Flops]) -> ModulePair:
    """Merge the trees of two models or modules: by name, and blocks by index."""
    ours, theirs = ({child.name: child for child in side.children if child.has_weights} for side in (a, b))
    only = [name for name in _STACKS if (name in ours) != (name in theirs)]
    if not a.path and len(only) == 2 and (only[0] in ours) != (only[1] in ours):
        mine, other = only if only[0] in ours else reversed(only)
        theirs = {mine if name == other else name: child for name, child in theirs.items()}
    children = []
    for name in in_order(list(ours), list(theirs)):
        x, y = ours.get(name), theirs.get(name)
        children.append(pair(x, y, flops) if x and y else _one_sided(x, y, flops))
    return ModulePair(a, b, _flops(a, b, flops), tuple(children))


def _one_sided(
    a: ModuleParameters | None, b: ModuleParameters | None, flops: tuple[Flops, Flops]
) -> ModulePair:
    """The pair of a module in only one model; a list is shown as its members."""
    module = a or b
    assert module is not None
    members = module.children if module.kind == "ModuleList" else ()
    pairs = (_one_sided(member if a else None, member if b else None, flops) for member in members)
    return ModulePair(a, b, _flops(a, b, flops), tuple(pairs))


def _flops(
    a: ModuleParameters | None, b: ModuleParameters | None, flops: tuple[Flops, Flops]
) -> tuple[int, int]:
    return flops[0].get(a.path, 0) if a else 0, flops[1].get(b.path, 0) if b else 0


_STACKS = ("encoder", "decoder")
"""The stacks that form a pair if each model has one stack."""


def in_order(ours: list[Name], theirs: list[Name]) -> list[Name]:
    """Merge two lists of names: ours in order, and each name only in theirs after its predecessor there."""
    merged = list(ours)
    for index, name in enumerate(theirs):
        if name not in ours:
            merged.insert(merged.index(theirs[index - 1]) + 1 if index else 0, name)
    return merged


def described(module: ModuleParameters) -> dict[str, str]:
    """A module's own weights by name: the shape of each, or the owner of a shared one."""
    return {
        name: _owner(f"{module.path}.{name}", owner)
        if (owner := module.shared.get(name))
        else " x ".join(map(str, shape))
        for name, shape in module.weights.items()
    }


def _owner(path: str, owner: str) -> str:
    """The owner of a shared weight, relative to its block."""
    parts = list(zip(path.split("."), owner.split("."), strict=False))
    other = [theirs for ours, theirs in parts if ours != theirs]
    same = path.count(".") == owner.count(".") and len(other) == 1 and other[0].isdecimal()
    return f"that of block {other[0]}" if same else f"that of {owner}"
