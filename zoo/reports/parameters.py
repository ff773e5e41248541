"""The parameters of a model, module by module.

Every count is read from the tensors of the built module, and each tensor is counted once, at the module that
comes first; a module that uses it again says whose it is.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from torch import nn

from specs.errors import Problem, SpecError, UserError
from specs.model import Model
from specs.suggest import did_you_mean
from zoo.components.embedding import Embedding
from zoo.reports.folding import Folded, FoldedStack


@dataclass(frozen=True)
class ModuleParameters:
    """A module with the weights it holds itself, and the modules within it.

    ``parameters`` counts its own and those within, without what it shares: ``shared`` gives the path of the
    first holder of each such weight.
    """

    path: str
    kind: str
    weights: Mapping[str, tuple[int, ...]]
    shared: Mapping[str, str]
    parameters: int
    children: tuple[ModuleParameters, ...]

    def walk(self) -> Iterator[ModuleParameters]:
        """This module, then those within it, depth first."""
        yield self
        for child in self.children:
            yield from child.walk()

    @property
    def name(self) -> str:
        """The last part of its path."""
        return self.path.rpartition(".")[2]

    @property
    def has_weights(self) -> bool:
        """Whether it or a module within it holds or shares a weight."""
        return bool(self.weights) or any(child.has_weights for child in self.children)

    @property
    def likeness(self) -> Hashable:
        """What two modules have in common that hold equal weights, share alike, and have equal modules within them."""
        return self._likeness(f"{self.path}.")

    def _likeness(self, around: str) -> Hashable:
        """The same of a module within one whose paths begin with ``around``."""
        shared = tuple((name, owner.removeprefix(around)) for name, owner in self.shared.items())
        inner = tuple((child.name, child._likeness(around)) for child in self.children)
        return self.kind, tuple(self.weights.items()), shared, self.parameters, inner

    def as_dict(self) -> dict[str, Any]:
        """As JSON data, without the modules within."""
        data: dict[str, Any] = {"path": self.path, "kind": self.kind, "parameters": self.parameters}
        data["weights"] = {name: list(shape) for name, shape in self.weights.items()}
        if self.shared:
            data["shared_with"] = dict(self.shared)
        return data


@dataclass(frozen=True)
class Comparison:
    """The count that a spec expects beside the built one; ``path`` is empty for the whole model."""

    path: str
    expected: int
    built: int

    @property
    def met(self) -> bool:
        return self.expected == self.built

    def __str__(self) -> str:
        of = f"{self.path}: " if self.path else ""
        if self.met:
            return f"{of}expected {self.expected:,} = built {self.built:,}"
        difference = self.built - self.expected
        return f"{of}expected {self.expected:,}, but built {self.built:,} ({difference:+,})"


@dataclass(frozen=True)
class ParameterReport:
    """The parameters of a model: module by module, in total, and against what the spec expects."""

    name: str
    root: ModuleParameters
    embedding_parameters: int
    comparisons: tuple[Comparison, ...]

    @property
    def total_parameters(self) -> int:
        return self.root.parameters

    @property
    def non_embedding_parameters(self) -> int:
        """All but the tables of tokens, token types and positions that the embeddings look up."""
        return self.total_parameters - self.embedding_parameters

    @property
    def met(self) -> bool:
        """Whether every expected count is the built one."""
        return all(comparison.met for comparison in self.comparisons)

    @property
    def modules(self) -> list[ModuleParameters]:
        """Every module that holds or shares a weight, itself or within it, depth first; the first is the model."""
        return [module for module in self.root.walk() if module.has_weights]

    def module(self, path: str) -> ModuleParameters:
        """The module at a path.  Raises :class:`UserError` with the nearest path there is."""
        paths = {module.path: module for module in self.root.walk()}
        if path not in paths:
            raise UserError(f"{self.name} has no module {path!r}: {did_you_mean(path, _near(path, paths))}")
        return paths[path]

    def select(self, paths: Iterable[str]) -> list[ModuleParameters]:
        """The modules at some paths, without those that lie within another: their counts add up."""
        chosen = {path: self.module(path) for path in paths}
        return [
            module
            for path, module in chosen.items()
            if not any(path.startswith(f"{outer}.") for outer in chosen)
        ]

    def as_dict(self, selected: Sequence[ModuleParameters] = ()) -> dict[str, Any]:
        """As JSON data; where modules are selected, with those, all that is within them, and their sum."""
        modules = (
            [m for top in selected for m in top.walk() if m.has_weights] if selected else self.modules[1:]
        )
        data: dict[str, Any] = {
            "name": self.name,
            "total_parameters": self.total_parameters,
            "embedding_parameters": self.embedding_parameters,
            "non_embedding_parameters": self.non_embedding_parameters,
            "expected": [
                {"path": c.path, "published": c.expected, "built": c.built, "met": c.met}
                for c in self.comparisons
            ],
            "modules": [module.as_dict() for module in modules],
        }
        if selected:
            data["selected_parameters"] = sum(module.parameters for module in selected)
        return data


def parameter_report(spec: Model) -> ParameterReport:
    """The report of a spec's model.

    Equal layers are built once or twice, and told one by one.  Raises :class:`SpecError` when ``expect.modules``
    names a module that the model lacks.
    """
    return folded_report(Folded.of(spec))


def folded_report(folded: Folded) -> ParameterReport:
    """The same of a spec that is folded already."""
    report = ParameterReport(folded.spec.name, module_tree(folded), _embedding_parameters(folded.model), ())
    return replace(report, comparisons=tuple(_comparisons(report, folded.spec)))


def module_tree(folded: Folded) -> ModuleParameters:
    """The modules of a spec's model, every layer in its place."""
    return _unfolded(built_tree(folded.model), folded)


def built_tree(model: nn.Module) -> ModuleParameters:
    """The modules of a model as it was built."""
    return _tree(model, "", {})


def _unfolded(module: ModuleParameters, folded: Folded) -> ModuleParameters:
    """The tree of the whole model from that of the built one: every layer in its place."""
    name, _, rest = module.path.partition(".")
    if name in folded.stacks and rest == "blocks":
        children = tuple(_layers(module, folded.stacks[name], folded))
    else:
        children = tuple(_unfolded(child, folded) for child in module.children)
    added = sum(child.parameters for child in children) - sum(child.parameters for child in module.children)
    shared = {name: folded.originals(owner)[0] for name, owner in module.shared.items()}
    return replace(module, shared=shared, parameters=module.parameters + added, children=children)


def _layers(blocks: ModuleParameters, stack: FoldedStack, folded: Folded) -> Iterator[ModuleParameters]:
    built = blocks.children
    for layer, (place, owner) in enumerate(zip(stack.like, stack.owners, strict=True)):
        here = f"{blocks.path}.{owner}"
        moved = _moved(built[place], built[place].path, here, folded)
        yield moved if owner == layer else _alias(moved, here, f"{blocks.path}.{layer}")


def _moved(module: ModuleParameters, old: str, new: str, folded: Folded) -> ModuleParameters:
    """A layer, or a module within it, at the path of another layer like it."""
    shared = {
        name: f"{new}{owner[len(old) :]}" if owner.startswith(f"{old}.") else folded.originals(owner)[0]
        for name, owner in module.shared.items()
    }
    children = tuple(_moved(child, old, new, folded) for child in module.children)
    path = f"{new}{module.path[len(old) :]}"
    return ModuleParameters(path, module.kind, module.weights, shared, module.parameters, children)


def _alias(module: ModuleParameters, old: str, new: str) -> ModuleParameters:
    """A module that is the same as one in another layer: all its weights are shared with that."""
    shared = {name: module.shared.get(name, f"{module.path}.{name}") for name in module.weights}
    children = tuple(_alias(child, old, new) for child in module.children)
    return ModuleParameters(
        f"{new}{module.path[len(old) :]}", module.kind, module.weights, shared, 0, children
    )


def _tree(module: nn.Module, path: str, owners: dict[int, str]) -> ModuleParameters:
    """A module's tree; ``owners`` has the path of the first holder of each tensor met so far, by identity."""
    weights, shared, count = {}, {}, 0
    for name, weight in module.named_parameters(recurse=False, remove_duplicate=False):
        here = f"{path}.{name}" if path else name
        weights[name] = tuple(weight.shape)
        owner = owners.setdefault(id(weight), here)
        if owner == here:
            count += weight.numel()
        else:
            shared[name] = owner
    children = tuple(
        _tree(child, f"{path}.{name}" if path else name, owners)
        for name, child in module._modules.items()
        if child is not None
    )
    kind = getattr(module, "component_kind", type(module).__name__)
    return ModuleParameters(
        path, kind, weights, shared, count + sum(child.parameters for child in children), children
    )


def _embedding_parameters(model: nn.Module) -> int:
    """The parameters of the tables that turn tokens, token types and positions into vectors."""
    embeddings = [module for module in model.modules() if isinstance(module, Embedding)]
    tables = {
        id(table): table for each in embeddings for table in each.modules() if isinstance(table, nn.Embedding)
    }
    return sum(table.weight.numel() for table in tables.values())


def _comparisons(report: ParameterReport, spec: Model) -> Iterator[Comparison]:
    if spec.expect.parameters is not None:
        yield Comparison("", spec.expect.parameters, report.total_parameters)
    for key, expected in spec.expect.modules.items():
        try:
            built = sum(report.module(path.strip()).parameters for path in key.split("+"))
        except UserError as error:
            rule = "must be the path of a module, or several joined by +"
            raise SpecError([Problem(rule, ("expect", "modules", key), expected, str(error))]) from None
        yield Comparison(key, expected, built)


def _near(path: str, paths: Mapping[str, ModuleParameters]) -> list[str]:
    """The paths to suggest for a wrong one: those of the deepest module on its way that exists."""
    parts = path.split(".")
    there = next(".".join(parts[:n]) for n in range(len(parts) - 1, -1, -1) if ".".join(parts[:n]) in paths)
    return [child.path for child in paths[there].children]
