"""The parameters of a model, module by module.

Counts come from the tensors of the built modules. Each tensor counts once, at the first module that holds it; other modules
name that owner.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

from torch import nn

from specs.base.errors import Problem, SpecError, UserError
from specs.base.result_table import ResultTable
from specs.base.suggest import suggestion
from specs.base.tabular import Tabular
from specs.model.model import Model
from zoo.core.facts import PARAMETER_ROLE
from zoo.core.roles import kind_name
from zoo.core.units import total_and_active
from zoo.reports.folding import Folded, FoldedStack, once
from zoo.reports.parameter_check import ParameterCheck
from zoo.reports.roles import active_parameters


@dataclass(frozen=True)
class ModuleParameters:
    """A module with its own weights, and its submodules.

    ``parameters`` includes submodules but not shared weights; ``shared`` gives the path of the first holder of each shared
    weight.
    """

    path: str
    kind: str
    weights: Mapping[str, tuple[int, ...]]
    shared: Mapping[str, str]
    parameters: int
    children: tuple[ModuleParameters, ...]
    alike: ModuleParameters | None = field(default=None, repr=False, compare=False)
    """An equal layer, if it is known to be one."""

    def walk(self) -> Iterator[ModuleParameters]:
        """This module and its submodules, depth first."""
        yield self
        for child in self.children:
            yield from child.walk()

    @cached_property
    def by_path(self) -> dict[str, ModuleParameters]:
        """This module and its submodules by path, depth first."""
        return {module.path: module for module in self.walk()}

    @property
    def name(self) -> str:
        """The last part of its path."""
        return self.path.rpartition(".")[2]

    @property
    def has_weights(self) -> bool:
        """Whether it or a submodule holds or shares a weight."""
        return bool(self.weights) or any(child.has_weights for child in self.children)

    @cached_property
    def likeness(self) -> Hashable:
        """A key that is equal for modules with equal weights, sharing and submodules."""
        return self._likeness(f"{self.path}.") if self.alike is None else self.alike.likeness

    def _likeness(self, around: str) -> Hashable:
        """The same key for a submodule of the module at ``around``."""
        shared = tuple((name, owner.removeprefix(around)) for name, owner in self.shared.items())
        inner = tuple((child.name, child._likeness(around)) for child in self.children)
        return self.kind, tuple(self.weights.items()), shared, self.parameters, inner

    def as_dict(self) -> dict[str, Any]:
        """As JSON data, without submodules."""
        data: dict[str, Any] = {"path": self.path, "kind": self.kind, "parameters": self.parameters}
        data["weights"] = {name: list(shape) for name, shape in self.weights.items()}
        if self.shared:
            data["shared_with"] = dict(self.shared)
        return data


@dataclass(frozen=True)
class ParameterReport(Tabular):
    """The parameters of a model: by module, in total, and against the spec's expected counts."""

    name: str
    root: ModuleParameters
    active_parameters: int
    embedding_parameters: int
    comparisons: tuple[ParameterCheck, ...]

    @property
    def total_parameters(self) -> int:
        return self.root.parameters

    @property
    def non_embedding_parameters(self) -> int:
        """Parameters without the embedding tables of tokens, token types and positions."""
        return self.total_parameters - self.embedding_parameters

    @property
    def met(self) -> bool:
        """Whether every expected count equals the actual one."""
        return all(comparison.met for comparison in self.comparisons)

    @property
    def modules(self) -> list[ModuleParameters]:
        """Every module with weights, held or shared, its own or in submodules; depth first from the whole model."""
        return [module for module in self.root.walk() if module.has_weights]

    def module(self, path: str) -> ModuleParameters:
        """The module at a path. Raises :class:`UserError` with the nearest existing path."""
        paths = self.root.by_path
        if path not in paths:
            raise UserError(f"{self.name} has no module {path!r}. {suggestion(path, _near(path, paths))}")
        return paths[path]

    def select(self, paths: Iterable[str]) -> list[ModuleParameters]:
        """The modules at some paths, without modules inside another one, so that their counts add up."""
        chosen = {path: self.module(path) for path in paths}
        return [
            module
            for path, module in chosen.items()
            if not any(path.startswith(f"{outer}.") for outer in chosen)
        ]

    def table(self) -> ResultTable:
        """The modules of the first two levels."""
        total = self.total_parameters
        shown = [
            module for top in self.root.children for module in (top, *top.children) if module.has_weights
        ]
        rows = [
            (
                "  " * module.path.count(".") + module.name,
                module.kind,
                f"{module.parameters:,}",
                f"{module.parameters / total:.1%}",
            )
            for module in shown
        ]
        return ResultTable(
            f"{self.name}: {total_and_active(total, self.active_parameters)}",
            ("module", "kind", "parameters", "share"),
            rows,
        )

    def as_dict(self, selected: Sequence[ModuleParameters] = ()) -> dict[str, Any]:
        """As JSON data; selected modules come with their submodules and their sum."""
        modules = (
            [m for top in selected for m in top.walk() if m.has_weights] if selected else self.modules[1:]
        )
        data: dict[str, Any] = {
            "name": self.name,
            "total_parameters": self.total_parameters,
            "active_parameters": self.active_parameters,
            "embedding_parameters": self.embedding_parameters,
            "non_embedding_parameters": self.non_embedding_parameters,
            "expected": [comparison.as_dict() for comparison in self.comparisons],
            "modules": [module.as_dict() for module in modules],
        }
        if selected:
            data["selected_parameters"] = sum(module.parameters for module in selected)
        return data


def parameter_report(spec: Model) -> ParameterReport:
    """The report of a spec's model.

    Equal layers are built once or twice, and reported one by one.  Raises :class:`SpecError` if ``expect.modules``
    names a module that the model does not have.
    """
    return folded_report(Folded.of(spec))


@once
def folded_report(folded: Folded) -> ParameterReport:
    """The report of a folded spec."""
    report = ParameterReport(
        folded.spec.name,
        module_tree(folded),
        active_parameters(folded),
        _embedding_parameters(folded),
        (),
    )
    return replace(report, comparisons=tuple(_comparisons(report, folded.spec)))


def module_tree(folded: Folded) -> ModuleParameters:
    """The module tree of a spec's full model."""
    return _unfolded(built_tree(folded.model), folded)


def built_tree(model: nn.Module) -> ModuleParameters:
    """The module tree of a built model."""
    return _tree(model, "", {})


def _unfolded(module: ModuleParameters, folded: Folded) -> ModuleParameters:
    """Expand the tree of a folded model to the full model's."""
    name, _, rest = module.path.partition(".")
    if name in folded.stacks and rest == "blocks":
        children = tuple(_layers(module, folded.stacks[name], folded))
    else:
        children = tuple(_unfolded(child, folded) for child in module.children)
    added = sum(child.parameters for child in children) - sum(child.parameters for child in module.children)
    shared = {name: folded.originals(owner)[0] for name, owner in module.shared.items()}
    return replace(module, shared=shared, parameters=module.parameters + added, children=children)


def _layers(blocks: ModuleParameters, stack: FoldedStack, folded: Folded) -> Iterator[ModuleParameters]:
    built, first = blocks.children, dict[int, ModuleParameters]()
    for layer, (index, owner) in enumerate(zip(stack.like, stack.owners, strict=True)):
        path = f"{blocks.path}.{owner}"
        moved = _moved(built[index], len(built[index].path), path, folded)
        if owner == layer:
            yield replace(moved, alike=first.get(index))
            first.setdefault(index, moved)
        else:
            yield _alias(moved, path, f"{blocks.path}.{layer}")


def _moved(module: ModuleParameters, start: int, new: str, folded: Folded) -> ModuleParameters:
    """A layer or submodule, copied to the path of an equal layer; ``start``: the length of the layer's own path."""
    old, shared = f"{module.path[:start]}.", module.shared
    if shared:
        shared = {
            name: f"{new}{owner[start:]}" if owner.startswith(old) else folded.originals(owner)[0]
            for name, owner in shared.items()
        }
    children = tuple([_moved(child, start, new, folded) for child in module.children])
    path = f"{new}{module.path[start:]}"
    return ModuleParameters(path, module.kind, module.weights, shared, module.parameters, children)


def _alias(module: ModuleParameters, old: str, new: str) -> ModuleParameters:
    """A module that shares all its weights with the same module of another layer."""
    shared = {name: module.shared.get(name, f"{module.path}.{name}") for name in module.weights}
    children = tuple(_alias(child, old, new) for child in module.children)
    return ModuleParameters(
        f"{new}{module.path[len(old) :]}", module.kind, module.weights, shared, 0, children
    )


def _tree(module: nn.Module, path: str, owners: dict[int, str]) -> ModuleParameters:
    """A module's tree; ``owners`` maps each tensor seen, by identity, to the path of its first holder."""
    weights, shared, count = {}, {}, 0
    for name, weight in module.named_parameters(recurse=False, remove_duplicate=False):
        weight_path = f"{path}.{name}" if path else name
        weights[name] = tuple(weight.shape)
        owner = owners.setdefault(id(weight), weight_path)
        if owner == weight_path:
            count += weight.numel()
        else:
            shared[name] = owner
    children = tuple(
        _tree(child, f"{path}.{name}" if path else name, owners)
        for name, child in module._modules.items()
        if child is not None
    )
    kind = kind_name(module)
    return ModuleParameters(
        path, kind, weights, shared, count + sum(child.parameters for child in children), children
    )


def _embedding_parameters(folded: Folded) -> int:
    """The parameters of all embedding tables: tokens, token types, positions, and per-layer embeddings."""
    tables = {
        id(table): table.weight.numel() * folded.copies(f"{path}.{name}")
        for path, module in folded.model.named_modules()
        if PARAMETER_ROLE.of(module) == "embedding"
        for name, table in module.named_modules()
        if isinstance(table, nn.Embedding)
    }
    return sum(tables.values())


def _comparisons(report: ParameterReport, spec: Model) -> Iterator[ParameterCheck]:
    if spec.expect.parameters is not None:
        yield ParameterCheck("", spec.expect.parameters, report.total_parameters)
    if spec.expect.active_parameters is not None:
        yield ParameterCheck("", spec.expect.active_parameters, report.active_parameters, active=True)
    for key, expected in spec.expect.modules.items():
        try:
            built = sum(report.module(path.strip()).parameters for path in key.split("+"))
        except UserError as error:
            rule = "must be the path of a module, or several joined by +"
            raise SpecError([Problem(rule, ("expect", "modules", key), expected, str(error))]) from None
        yield ParameterCheck(key, expected, built)


def _near(path: str, paths: Mapping[str, ModuleParameters]) -> list[str]:
    """Suggestions for a wrong path: the paths below its deepest existing parent."""
    parts = path.split(".")
    parent = next(".".join(parts[:n]) for n in range(len(parts) - 1, -1, -1) if ".".join(parts[:n]) in paths)
    return [child.path for child in paths[parent].children]
