"""The catalog of a zoo: every export of a zoo file, or of a directory, on one page."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from exporters.layouts import LAYOUTS
from exporters.making.artefacts import read_zoo
from specs.base.errors import UserError, reason_of
from specs.model.model import Model
from zoo.catalog.changes import Changes, Data, data_of
from zoo.catalog.entries import CatalogEntry, UnlistedExport, distinct_models, exports_below, read_entry
from zoo.core.progress import Progress, Stage
from zoo.files.ownership import MANIFEST
from zoo.pages.catalog_details import model_details
from zoo.pages.catalog_page import ModelPart, catalog_page
from zoo.record.manifest import Manifest
from zoo.record.usage import Usage
from zoo.reports.parameters import parameter_report


@dataclass(frozen=True)
class Catalog:
    """The exports of the zoo ``title``, the missing or damaged ones, the data for the next catalog, and what ``changed``
    since the last one (None for no changes or no earlier catalog)."""

    title: str
    entries: tuple[CatalogEntry, ...]
    problems: tuple[UnlistedExport, ...]
    data: Mapping[str, Any]
    changed: Changes | None

    def page(self, beside: Path, progress: Progress = lambda stage: None) -> str:
        """Return the page, with directories relative to its own, ``beside``."""
        models, _ = distinct_models(self.entries)
        parts = []
        for place, spec in enumerate(models):
            progress(Stage(f"model {place + 1} of {len(models)}: {spec.name}"))
            counts = parameter_report(spec)
            parts.append(
                ModelPart(spec, counts.total_parameters, counts.active_parameters, model_details(spec))
            )
        places = {
            entry.name: Path(os.path.relpath(entry.record.directory, beside)).as_posix()
            for entry in self.entries
        }
        return catalog_page(self.title, self.entries, parts, self.data, self.problems, places)

    def as_dict(self) -> dict[str, Any]:
        """As JSON data."""
        artefacts = self.data["artefacts"]
        return {
            "title": self.title,
            "artefacts": {
                entry.name: {
                    "directory": str(entry.record.directory),
                    "model": entry.spec.name,
                    "bytes": entry.size,
                    **{key: value for key, value in artefacts[entry.name].items() if key != "spec"},
                }
                for entry in self.entries
            },
            "problems": {problem.name: problem.why for problem in self.problems},
            "changes": None if self.changed is None else self.changed.as_dict(),
        }


def catalog(
    place: Path,
    earlier: Data | None,
    at: str,
    *,
    contents: bool = False,
    progress: Progress = lambda stage: None,
) -> Catalog:
    """Return the catalog of the artefacts of a zoo file, or of the exports below a directory.

    ``earlier`` is the data of the last catalog, ``at`` the current time. With ``contents``, every file is compared with
    its digest. Raises :class:`specs.base.errors.UserError` for a wrong zoo file, and where nothing is found.
    """
    directories, problems = _wanted(place)
    entries = []
    for name, directory in directories.items():
        progress(Stage(f"read {name}"))
        try:
            entries.append(read_entry(name, directory, _client, contents=contents))
        except UserError as error:
            why = reason_of(error).replace(f"{directory}{os.sep}", "").replace(str(directory), name)
            problems.append(UnlistedExport(name, why))
    if not (entries or problems):
        raise UserError(
            f"{place} has no exports.\n  Build some with zoo make or zoo export, or give another directory."
        )
    title = place.resolve().parent.name if place.is_file() else place.resolve().name
    changed, data = data_of(entries, earlier, at)
    return Catalog(title or "zoo", tuple(entries), tuple(problems), data, changed)


def _wanted(place: Path) -> tuple[dict[str, Path], list[UnlistedExport]]:
    """Return the directories of exports by name, and the artefacts that are not built."""
    if place.is_dir():
        return exports_below(place), []
    wanted = read_zoo(place).wanted
    built = {each.name: each.directory for each in wanted if (each.directory / MANIFEST).is_file()}
    return built, [UnlistedExport(each.name, "not built") for each in wanted if each.name not in built]


def _client(spec: Model, manifest: Manifest) -> tuple[str, Usage]:
    layout = LAYOUTS.get(manifest.layout)
    if layout is None:
        raise UserError(f"There is no layout {manifest.layout!r}.\n  Install the version that exported it.")
    return layout.client, layout.usage(spec, manifest)
