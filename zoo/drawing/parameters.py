"""The parameter counts in a drawing: each weight counts at one part."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from specs.base.words import PartRole
from zoo.core.units import parameter_text
from zoo.drawing.diagram import Part
from zoo.reports.parameters import ModuleParameters, ParameterReport


class Counts:
    """The modules of a report by path, with their parameter counts as text."""

    def __init__(self, report: ParameterReport) -> None:
        self.modules: Mapping[str, ModuleParameters] = report.root.by_path
        self._sharing = [module for module in self.modules.values() if module.shared]

    def of(self, paths: Iterable[str], without: Iterable[str] = ()) -> int:
        """The parameters of modules, apart from the submodules ``without``."""
        inner = sum(self.modules[path].parameters for path in without if path in self.modules)
        return sum(self.modules[path].parameters for path in paths if path in self.modules) - inner

    def text(self, sizes: Sequence[int], paths: Sequence[str]) -> str:
        """The counts of a part over its layers as text: one count if all are equal or shared, else the total."""
        same = len(set(sizes)) == 1 or not any(sizes[1:])
        words = (
            [parameter_text(sizes[0]) if same else f"{parameter_text(sum(sizes))} in all"]
            if any(sizes)
            else []
        )
        if self.owners(paths):
            words.append("tied" if any("vocabulary" in path for path in paths) else "shared")
        return " + ".join(words)

    def owners(self, paths: Sequence[str]) -> list[str]:
        """The paths of weights that modules share with their holders."""
        return [
            owner
            for path in paths
            for module in self._sharing
            if module.path == path or module.path.startswith(f"{path}.")
            for owner in module.shared.values()
            if not any(owner.startswith(f"{own}.") for own in paths)
        ]

    def part(
        self,
        role: PartRole,
        title: str,
        details: Iterable[str],
        path: str,
        keys: str,
        without: Iterable[str] = (),
    ) -> Part:
        """A part that stands for a module outside the layers; ``keys``: its path in the spec."""
        total = self.of([path], without)
        return Part(role, title, tuple(details), (path,), total, self.text([total], [path]), keys)

    def sizes(self, path: str) -> tuple[int, ...]:
        """The sizes of a module's weight; empty without one."""
        module = self.modules.get(path)
        return module.weights.get("weight", ()) if module is not None else ()

    def widths(self, path: str) -> str:
        """The input and output width of a matrix."""
        rows, columns = self.sizes(path)
        return f"{columns:,} → {rows:,}"
