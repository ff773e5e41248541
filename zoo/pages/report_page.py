"""The page of a model: what ``zoo report SPEC --html FILE`` writes."""

from __future__ import annotations

from collections.abc import Mapping
from html import escape

from specs.forms.resolved import resolved
from specs.language.writing import dump
from specs.model.model import Model
from zoo.builder import assemble
from zoo.drawing import draw_svg
from zoo.pages.budget import budget_data
from zoo.pages.costs import costs_section
from zoo.pages.markup import scrolling, section
from zoo.pages.page import asset, embedded, page
from zoo.pages.positions import positions_section
from zoo.pages.shapes import shapes_section
from zoo.pages.treemap import treemap_section
from zoo.pages.verification import verification_section
from zoo.pages.visibility import visibility_section
from zoo.record.integrity import Integrity
from zoo.record.manifest import ExportRecord
from zoo.reports.report import Report

SCRIPTS = ("treemap.js", "sizes.js", "costs.js", "budget.js", "positions.js")


def report_page(report: Report, export: tuple[ExportRecord, Integrity] | None = None) -> str:
    """A self-contained document about a model; ``export``: the manifest of an exported directory, and whether its files
    still match it."""
    spec, drawn = report.spec, assemble(report.spec)  # a copy whose positions get values
    parameters, treemap = treemap_section(report)
    costs, polynomials = costs_section(report)
    parts = {
        "architecture": _architecture(spec),
        "parameters": parameters,
        "costs": costs,
        "shapes": shapes_section(drawn, spec),  # before positions get values
        "attention": visibility_section(drawn, spec),
    }
    parts["positions"], positions = positions_section(drawn, spec)
    if export is not None:
        parts["verification"] = verification_section(*export)
    data = {
        "parameters": treemap,
        "costs": polynomials,
        "budget": budget_data(report),
        "positions": positions,
    }
    body = "\n".join([_top(report, parts), *parts.values(), _spec(spec)])
    script = f"const DATA = {embedded(data)};\n" + "".join(map(asset, SCRIPTS))
    return page(f"zoo report {spec.name}", body, script, asset("report.css"))


def _top(report: Report, parts: Mapping[str, str]) -> str:
    """The model's name, summary and main sizes, and links to the sections."""
    spec = report.spec
    sizes = {
        "architecture": spec.architecture,
        "parameters": f"{report.parameters:,}",
        "active per token": f"{report.active:,}" if report.active != report.parameters else "",
        "layers": " + ".join(str(stack.depth) for _, stack in spec.stacks()),
        "width": spec.widths_text,
        "vocabulary": f"{spec.vocab_size:,}" if spec.vocab_size else "",
        "context": " + ".join(
            f"{length:,}" for _, stack in spec.stacks() if (length := spec.context_length_of(stack))
        ),
    }
    facts = "".join(f"<div><dt>{name}</dt><dd>{value}</dd></div>" for name, value in sizes.items() if value)
    links = "".join(f'<a href="#{key}">{key}</a>' for key in [*parts, "spec"])
    year = f" ({spec.year})" if spec.year and str(spec.year) not in spec.summary else ""
    source = f'<p class="quiet">{escape(spec.source)}</p>' if spec.source else ""
    return (
        f"<h1>{escape(spec.name)}</h1><p>{escape(spec.summary)}{year}</p>{source}"
        f'<dl class="facts">{facts}</dl><nav class="contents" aria-label="Sections">{links}</nav>'
    )


def _architecture(spec: Model) -> str:
    about = "Read from the bottom up; equal layers are drawn once, with their number."
    return section("architecture", "Architecture", about, scrolling("Drawing", draw_svg(spec)))


def _spec(spec: Model) -> str:
    """The spec as ``zoo show`` prints it, collapsed."""
    text = escape(dump(resolved(spec)))
    return f'<section id="spec"><h2>Spec</h2><details><summary>The resolved spec</summary><pre>{text}</pre></details></section>'
