"""The page of a zoo: what ``zoo catalog`` writes."""

from __future__ import annotations

import base64
import json
import re
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from markupsafe import Markup

from specs.model.model import Model
from zoo.catalog.changes import Changes
from zoo.catalog.entries import CatalogEntry, UnlistedExport
from zoo.core.units import byte_text
from zoo.pages.catalog_details import artefact_details
from zoo.pages.page import asset, embedded, page
from zoo.pages.rendering import render
from zoo.record.records import QualityRecord

_DATA = re.compile(r'<script type="application/json" id="catalog-data">(.*?)</script>', re.DOTALL)

FILTERS = ("architecture", "parameters", "target", "precision", "layout", "verification")

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
    body = render(
        "catalog.html",
        title=title,
        totals=_totals(entries, models),
        changes=[Changes.of(change) for change in data["changes"]],
        problems=problems,
        filters=_filters(entries, of),
        rows=list(map(_row, entries, of)),
        data=Markup(embedded(data)),
    )
    script = f"const DETAILS = {embedded(details)};\n{asset('catalog.js')}"
    style = asset("report.css") + asset("catalog.css")
    return page(f"Model catalog: {title}", body, script, style, "zoo catalog")


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


def _filters(entries: Sequence[CatalogEntry], models: Sequence[ModelPart]) -> dict[str, list[str]]:
    """The options of each filter."""
    values = list(map(_facets, entries, models))
    options = {name: sorted({facets[name] for facets in values}) for name in FILTERS}
    return {**options, "parameters": [bucket for bucket in BUCKETS if bucket in options["parameters"]]}


def _facets(entry: CatalogEntry, model: ModelPart) -> dict[str, str]:
    """The facets by which rows are filtered."""
    bucket = next(name for name, end in BUCKETS.items() if end is None or model.parameters < end)
    return {
        "architecture": model.spec.architecture,
        "parameters": bucket,
        "target": entry.manifest.target,
        "precision": entry.manifest.precision,
        "layout": entry.manifest.layout,
        "verification": entry.state,
    }


def _row(entry: CatalogEntry, model: ModelPart) -> dict[str, Any]:
    facets = _facets(entry, model)
    return {
        "entry": entry,
        "model": model,
        "facets": facets,
        "facets_json": json.dumps(facets),
        "searched": f"{entry.name} {model.spec.name} {model.spec.summary}".lower(),
        "quality": _quality_text(entry.record.build.quality if entry.record.build else None),
    }


def _quality_text(quality: QualityRecord | None) -> str:
    """The figure that is held to a limit, or else the first."""
    if quality is None or not quality.figures:
        return ""
    measure = quality.budget.measure if quality.budget else next(iter(quality.figures))
    value = quality.figures.get(measure)
    return "" if value is None else f"{measure} {value:.3g}"
