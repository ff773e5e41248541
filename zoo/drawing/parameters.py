"""The parameters on the parts of a drawing: each weight is counted at one part, and told as the reader would say it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from zoo.drawing.wording import count_text
from zoo.reports.parameters import ModuleParameters, ParameterReport


class Counts:
    """The counts of a report by path.  ``shared`` names the drawing's word for a weight that is counted elsewhere."""

    def __init__(self, report: ParameterReport) -> None:
        self.modules: dict[str, ModuleParameters] = {module.path: module for module in report.root.walk()}

    def of(self, paths: Iterable[str], without: Iterable[str] = ()) -> int:
        """The parameters of modules without those of others within them."""
        inner = sum(self.modules[path].parameters for path in without if path in self.modules)
        return sum(self.modules[path].parameters for path in paths if path in self.modules) - inner

    def text(self, each: Sequence[int], paths: Sequence[str]) -> str:
        """How the counts of a part in each of its layers are told: as one where all are equal."""
        total = sum(each)
        told = (
            [count_text(each[0]) if len(set(each)) == 1 else f"{count_text(total)} in all"] if total else []
        )
        owners = self.owners(paths)
        if owners:
            told.append("tied" if any("vocabulary" in path for path in paths) else "shared")
        return " + ".join(told)

    def owners(self, paths: Sequence[str]) -> list[str]:
        """The paths of the first holders of weights that modules use and others hold."""
        return [
            owner
            for path in paths
            if path in self.modules
            for module in self.modules[path].walk()
            for owner in module.shared.values()
            if not any(owner.startswith(f"{own}.") for own in paths)
        ]
