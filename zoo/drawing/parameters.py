"""The parameters on the parts of a drawing: each weight is counted at one part."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from zoo.drawing.diagram import Part, Role
from zoo.drawing.wording import count_text
from zoo.reports.parameters import ModuleParameters, ParameterReport


class Counts:
    """The modules of a report by path, and what is said of their parameters."""

    def __init__(self, report: ParameterReport) -> None:
        self.modules: dict[str, ModuleParameters] = {module.path: module for module in report.root.walk()}

    def of(self, paths: Iterable[str], without: Iterable[str] = ()) -> int:
        """The parameters of modules, without those of others within them."""
        inner = sum(self.modules[path].parameters for path in without if path in self.modules)
        return sum(self.modules[path].parameters for path in paths if path in self.modules) - inner

    def text(self, each: Sequence[int], paths: Sequence[str]) -> str:
        """How the counts of a part in each of its layers are told: as one where all are equal, or one and the same."""
        same = len(set(each)) == 1 or not any(each[1:])
        told = [count_text(each[0]) if same else f"{count_text(sum(each))} in all"] if any(each) else []
        if self.owners(paths):
            told.append("tied" if any("vocabulary" in path for path in paths) else "shared")
        return " + ".join(told)

    def owners(self, paths: Sequence[str]) -> list[str]:
        """The paths of the weights that modules use and others hold."""
        return [
            owner
            for path in paths
            if path in self.modules
            for module in self.modules[path].walk()
            for owner in module.shared.values()
            if not any(owner.startswith(f"{own}.") for own in paths)
        ]

    def part(
        self, role: Role, title: str, details: Iterable[str], *paths: str, without: Iterable[str] = ()
    ) -> Part:
        """A part that stands for modules outside the layers."""
        total = self.of(paths, without)
        return Part(role, title, tuple(details), paths, total, self.text([total], paths))

    def sizes(self, path: str) -> tuple[int, ...]:
        """The sizes of a module's weight; none where it has no such weight."""
        module = self.modules.get(path)
        return module.weights.get("weight", ()) if module is not None else ()

    def widths(self, path: str) -> str:
        """From which width to which a matrix goes."""
        rows, columns = self.sizes(path)
        return f"{columns:,} → {rows:,}"
