"""The page of a model: what ``zoo report SPEC --html FILE`` writes."""

from __future__ import annotations

from collections.abc import Mapping
from html import escape

from markupsafe import escape as shown

from specs.forms.resolved import resolved
from specs.language.writing import dump
from specs.model.model import Model
from zoo.builder import assemble
from zoo.checks.shapes import check_shapes
from zoo.drawing import draw_scene
from zoo.drawing.scene import Scene
from zoo.pages.budget import budget_data
from zoo.pages.costs import costs_section
from zoo.pages.drawing import inline_svg
from zoo.pages.headline import headline
from zoo.pages.markup import scrolling, section
from zoo.pages.page import asset, embedded, page
from zoo.pages.part_figures import part_data
from zoo.pages.positions import positions_section
from zoo.pages.shapes import shapes_section
from zoo.pages.treemap import treemap_section
from zoo.pages.verification import verification_section
from zoo.pages.visibility import visibility_section
from zoo.record.integrity import Integrity
from zoo.record.manifest import ExportRecord
from zoo.reports.report import Report

SCRIPTS = ("sizes.js", "squarified.js", "treemap.js", "costs.js", "budget.js", "parts.js", "positions.js")


def report_page(report: Report, export: tuple[ExportRecord, Integrity] | None = None) -> str:
    """A self-contained document about a model; ``export``: the manifest of an exported directory, and whether its files
    still match it."""
    spec, drawn = report.spec, assemble(report.spec)  # a copy whose positions get values
    shapes = check_shapes(drawn, spec)  # before positions get values
    scene = draw_scene(spec)
    figures = part_data(report, drawn, shapes.modules, scene)
    parameters, treemap = treemap_section(report)
    costs, polynomials = costs_section(report)
    sections = {"architecture": _architecture(scene)}
    if export is not None:
        sections["verification"] = verification_section(*export)
    sections |= {
        "parameters": parameters,
        "costs": costs,
        "shapes": shapes_section(shapes),
        "attention": visibility_section(drawn, spec),
    }
    sections["positions"], positions = positions_section(drawn, spec)
    data = {
        "parameters": treemap,
        "costs": polynomials,
        "budget": budget_data(report),
        "parts": figures,
        "positions": positions,
    }
    body = "\n".join([_top(report, sections, export), *sections.values(), _spec(spec)])
    script = f"const DATA = {embedded(data)};\n" + "".join(map(asset, SCRIPTS))
    return page(f"zoo report {spec.name}", body, script, asset("report.css"), "zoo report")


def _top(report: Report, sections: Mapping[str, str], export: tuple[ExportRecord, Integrity] | None) -> str:
    """The model's name, summary and main figures, and links to the sections."""
    spec = report.spec
    facts = "".join(
        f"<div><dt>{escape(name)}</dt><dd>{shown(value)}</dd></div>"
        for name, value in headline(report, export).items()
    )
    links = "".join(f'<a href="#{key}">{key}</a>' for key in [*sections, "spec"])
    year = f" ({spec.year})" if spec.year and str(spec.year) not in spec.summary else ""
    source = f'<p class="quiet">{escape(spec.source)}</p>' if spec.source else ""
    return (
        f"<h1>{escape(spec.name)}</h1><p>{escape(spec.summary)}{year}</p>{source}"
        f'<dl class="facts">{facts}</dl><nav class="contents" aria-label="Sections">{links}</nav>'
    )


def _architecture(scene: Scene) -> str:
    about = (
        "Read from the bottom up; equal layers are drawn once, with their number. Click a part, or move to it with the arrow "
        "keys and press Enter, to see its figures."
    )
    drawing = scrolling("Drawing", inline_svg(scene))
    panel = '<aside id="part" aria-live="polite" aria-label="Figures of the chosen part"></aside>'
    return section("architecture", "Architecture", about, f'<div class="drawn">{drawing}{panel}</div>')


def _spec(spec: Model) -> str:
    """The spec as ``zoo show`` prints it, collapsed."""
    text = escape(dump(resolved(spec)))
    return f'<section id="spec"><h2>Spec</h2><details><summary>The resolved spec</summary><pre>{text}</pre></details></section>'
