"""The page of a zoo: what ``zoo catalog`` writes."""

from __future__ import annotations

import base64
import json
import re
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import Any

from specs.model.model import Model
from zoo.catalog.changes import Changes
from zoo.catalog.entries import CatalogEntry, UnlistedExport
from zoo.core.units import byte_text, count_text
from zoo.pages.catalog_details import artefact_details, definitions
from zoo.pages.markup import scrolling, section
from zoo.pages.page import asset, embedded, page
from zoo.record.records import QualityRecord

_DATA = re.compile(r'<script type="application/json" id="catalog-data">(.*?)</script>', re.DOTALL)

_STATES = {"verified": "good", "failed": "bad", "unverified": "bad", "changed": "bad"}

BUCKETS = {
    "under 100M": 100_000_000,
    "100M to 1B": 1_000_000_000,
    "1B to 10B": 10_000_000_000,
    "over 10B": None,
}
"""The size filters, and the largest parameter count of each."""


@dataclass(frozen=True)
class ModelPart:
    """A model of the catalog: its parameters, those active per token, and the HTML that is shown on demand."""

    spec: Model
    parameters: int
    active: int
    details: str


def catalog_page(
    title: str,
    entries: Sequence[CatalogEntry],
    models: Sequence[ModelPart],
    data: Mapping[str, Any],
    problems: Sequence[UnlistedExport],
    places: Mapping[str, str],
) -> str:
    """A document with a table of artefacts; ``data`` is what the next catalog compares, ``places`` has their directories."""
    of = [models[data["artefacts"][entry.name]["spec"]] for entry in entries]
    details = {
        "models": [_packed(model.details) for model in models],
        "artefacts": {
            entry.name: [data["artefacts"][entry.name]["spec"], _packed(artefact_details(entry, places[entry.name]))]
            for entry in entries
        },
    }  # fmt: skip
    body = "\n".join([
        f"<h1>{escape(title)}</h1>",
        definitions(_totals(entries, models)),
        _changes([Changes.of(change) for change in data["changes"]]),
        _problems(problems),
        _artefacts(entries, of),
        f'<script type="application/json" id="catalog-data">{embedded(data)}</script>',
    ])  # fmt: skip
    script = f"const DETAILS = {embedded(details)};\n{asset('catalog.js')}"
    return page(f"zoo catalog: {title}", body, script, asset("report.css") + asset("catalog.css"))


def data_in(text: str) -> Any:
    """The data that a catalog's page keeps for the next one; None where the text is no such page."""
    match = _DATA.search(text)
    try:
        return json.loads(match[1]) if match else None
    except (ValueError, RecursionError):
        return None


def _packed(html: str) -> str:
    """HTML, compressed: drawings would take most of the page."""
    return base64.b64encode(zlib.compress(html.encode(), 9)).decode()


def _totals(entries: Sequence[CatalogEntry], models: Sequence[ModelPart]) -> dict[str, str]:
    verified = sum(entry.state == "verified" for entry in entries)
    return {
        "models": f"{len(models):,}",
        "artefacts": f"{len(entries):,}",
        "verified": f"{verified:,} of {len(entries):,}",
        "size": byte_text(sum(entry.size for entry in entries)),
    }


def _changes(history: Sequence[Changes]) -> str:
    if not history:
        return ""
    about = "Artefacts added, removed or rebuilt between two catalogs, latest first."
    parts = [
        f"<details{' open' if index == 0 else ''}><summary>{escape(change.at)}: {_counted(change)}</summary>"
        f"<ul>{_changed_items(change)}</ul></details>"
        for index, change in enumerate(history)
    ]
    return section("changes", "Changes", about, "".join(parts))


def _counted(changes: Changes) -> str:
    counts = {"added": changes.added, "removed": changes.removed, "changed": changes.changed}
    return ", ".join(f"{len(names):,} {what}" for what, names in counts.items() if names)


def _changed_items(changes: Changes) -> str:
    return "".join(f"<li><code>{escape(name)}</code> {escape(why)}</li>" for name, why in changes.lines())


def _problems(problems: Sequence[UnlistedExport]) -> str:
    if not problems:
        return ""
    items = "".join(
        f'<li><code>{escape(problem.name)}</code> <span class="bad">{escape(problem.why)}</span></li>'
        for problem in problems
    )
    return section(
        "problems",
        "Not listed",
        "Artefacts that are missing or damaged.",
        f"<ul>{items}</ul>",
    )


_COLUMNS = (
    "artefact", "model", "architecture", "parameters", "size", "target", "precision", "layout", "verification", "quality",
)  # fmt: skip
_NUMBERS = ("parameters", "size")


def _artefacts(entries: Sequence[CatalogEntry], models: Sequence[ModelPart]) -> str:
    rows = [_row(entry, model) for entry, model in zip(entries, models, strict=True)]
    head = "".join(
        f'<th scope="col"{_side(name)} aria-sort="none"><button type="button">{name}</button></th>'
        for name in _COLUMNS
    )
    body = "\n".join(rows)
    listed = scrolling(
        "Artefacts", f"<table><thead><tr>{head}</tr></thead>\n<tbody>\n{body}\n</tbody></table>"
    )
    about = "Choose an artefact to see its architecture, costs, verification and files, and a program that loads it."
    noscript = "<noscript><p>Searching and details need scripts, which are off.</p></noscript>"
    form = _filters(entries, models)
    count = '<p class="quiet" id="count" role="status"></p>'
    return section("artefacts", "Artefacts", about, f"{form}{noscript}{count}{listed}")


def _side(name: str) -> str:
    return ' class="number"' if name in _NUMBERS else ""


def _filters(entries: Sequence[CatalogEntry], models: Sequence[ModelPart]) -> str:
    values = [_facets(entry, model) for entry, model in zip(entries, models, strict=True)]
    selects = ""
    for name in ("architecture", "parameters", "target", "precision", "layout", "verification"):
        there = {value[name] for value in values}
        options = [bucket for bucket in BUCKETS if bucket in there] if name == "parameters" else sorted(there)
        choices = "".join(f"<option>{escape(option)}</option>" for option in options)
        selects += f'<label>{name} <select data-facet="{name}"><option value="">all</option>{choices}</select></label>'
    return f'<form class="filters"><label>search <input type="search" id="search"></label>{selects}</form>'


def _facets(entry: CatalogEntry, model: ModelPart) -> dict[str, str]:
    """The filters of the rows."""
    bucket = next(name for name, end in BUCKETS.items() if end is None or model.parameters < end)
    return {
        "architecture": model.spec.architecture,
        "parameters": bucket,
        "target": entry.manifest.target,
        "precision": entry.manifest.precision,
        "layout": entry.manifest.layout,
        "verification": entry.state,
    }


def _row(entry: CatalogEntry, model: ModelPart) -> str:
    facets = _facets(entry, model)
    searched = f"{entry.name} {model.spec.name} {model.spec.summary}".lower()
    name, parameters = escape(entry.name), model.parameters
    active = f", {count_text(model.active)} active" if model.active != parameters else ""
    quality = entry.record.build.quality if entry.record.build else None
    cells = [
        f'<button type="button" aria-expanded="false">{name}</button>',
        escape(model.spec.name),
        model.spec.architecture,
        (parameters, f"{count_text(parameters)}{active}"),
        (entry.size, byte_text(entry.size)),
        *(escape(facets[key]) for key in ("target", "precision", "layout")),
        f'<span class="{_STATES[entry.state]}">{escape(entry.state_text)}</span>',
        escape(_quality_text(quality)),
    ]
    shown = "".join(
        f"<td>{cell}</td>"
        if isinstance(cell, str)
        else f'<td class="number" data-value="{cell[0]}">{cell[1]}</td>'
        for cell in cells
    )
    return f"<tr data-name='{name}' data-search='{escape(searched)}' data-facets='{escape(json.dumps(facets))}'>{shown}</tr>"


def _quality_text(quality: QualityRecord | None) -> str:
    """The figure that is held to a limit, or else the first."""
    if quality is None or not quality.figures:
        return ""
    measure = quality.budget.measure if quality.budget else next(iter(quality.figures))
    value = quality.figures.get(measure)
    return "" if value is None else f"{measure} {value:.3g}"
