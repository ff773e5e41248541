"""The page of a model: what ``zoo report SPEC --html FILE`` writes."""

from __future__ import annotations

from collections.abc import Mapping
from html import escape
from typing import Any

from specs.model import Model
from specs.resolved import resolved
from specs.writing import dump
from zoo.builder import assemble
from zoo.drawing import draw_svg
from zoo.pages.costs import costs_section
from zoo.pages.markup import section
from zoo.pages.page import asset, embedded, page
from zoo.pages.positions import positions_section
from zoo.pages.shapes import shapes_section
from zoo.pages.treemap import treemap_section
from zoo.pages.verification import verification_section
from zoo.pages.visibility import visibility_section
from zoo.reports.costs import costs
from zoo.reports.parameters import parameter_report


def report_page(spec: Model, export: Mapping[str, Any] | None = None) -> str:
    """A self-contained document about a spec's model; ``export`` is what an exported directory records of itself."""
    model = assemble(spec)
    report = parameter_report(model, spec)
    treemap, root = treemap_section(report)
    shapes = shapes_section(spec)
    visibility = visibility_section(model, spec)
    positions, drawn = positions_section(model, spec)
    order = {path: place for place, (path, _) in enumerate(model.named_modules(remove_duplicate=False))}
    spent, polynomials = costs_section(costs(spec), spec, order)
    parts = {
        "architecture": _architecture(spec),
        "parameters": treemap,
        "costs": spent,
        "shapes": shapes,
        "attention": visibility,
        "positions": positions,
    }
    if export is not None:
        parts["verification"] = verification_section(export)
    data = {"parameters": root, "positions": drawn, "costs": polynomials}
    body = "\n".join([_top(spec, report.total_parameters, parts), *parts.values(), _spec(spec)])
    script = f"const DATA = {embedded(data)};\n" + "".join(
        map(asset, ("treemap.js", "sizes.js", "costs.js", "positions.js"))
    )
    return page(f"zoo report {spec.name}", body, script, asset("report.css"))


def _top(spec: Model, parameters: int, parts: Mapping[str, str]) -> str:
    """The name of the model, what it is, its main sizes, and links to the sections."""
    sizes = {
        "architecture": spec.architecture,
        "parameters": f"{parameters:,}",
        "layers": " + ".join(str(stack.depth) for _, stack in spec.stacks()),
        "width": f"{spec.d_model:,}",
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
    about = "Read from the bottom up; equal layers are one, with how many there are."
    return section(
        "architecture",
        "Architecture",
        about,
        f'<figure class="scroll" tabindex="0">{draw_svg(spec)}</figure>',
    )


def _spec(spec: Model) -> str:
    """The spec as ``zoo show`` prints it, folded away."""
    text = escape(dump(resolved(spec)))
    return f'<section id="spec"><h2>Spec</h2><details><summary>What the model was built from</summary><pre>{text}</pre></details></section>'
