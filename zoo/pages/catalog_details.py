"""The parts of a catalog that are shown on demand: of each model its drawing and costs, of each artefact its proof and files."""

from __future__ import annotations

from collections.abc import Iterator

from markupsafe import Markup

from specs.forms.resolved import resolved
from specs.language.writing import dump
from specs.model.model import Model
from zoo.catalog.entries import CatalogEntry
from zoo.core.units import byte_text, flop_text
from zoo.drawing import draw_scene
from zoo.pages.costs import TELLS
from zoo.pages.drawing import inline_svg
from zoo.pages.rendering import part, render
from zoo.pages.verification import verification_section
from zoo.reports.report import Report, report


def model_details(spec: Model) -> str:
    """The HTML about a model: what it is, what it costs, its drawing and its spec."""
    costs = report(spec)
    return render(
        "catalog_model.html",
        spec=spec,
        facts=_facts(costs),
        stages=_stages(costs),
        cache=_cache(costs),
        drawing=Markup(inline_svg(draw_scene(spec))),
        text=dump(resolved(spec)),
    )


def _facts(costs: Report) -> dict[str, str]:
    spec = costs.spec
    lengths = [spec.context_length_of(stack) for _, stack in spec.stacks()]
    return {
        "architecture": spec.architecture,
        "parameters": f"{costs.parameters:,}",
        "active per token": f"{costs.active:,}" if costs.active != costs.parameters else "",
        "layers": " + ".join(str(stack.depth) for _, stack in spec.stacks()),
        "width": spec.widths_text,
        "vocabulary": f"{spec.vocab_size:,}" if spec.vocab_size else "",
        "context": " + ".join(f"{length:,}" for length in lengths if length),
    }


def _stages(costs: Report) -> Iterator[tuple[str, ...]]:
    lengths = costs.lengths
    for name, stage in costs.costs.stages.items():
        symbols = lengths.symbols(name)
        tokens = lengths.source if name in ("encode", "see") else symbols["T"]
        sizes = f"{tokens:,} tokens" if tokens > 1 else f"1 token after {symbols['P']:,}"
        yield name, TELLS[name], sizes, flop_text(stage.total.at(**symbols))


def _cache(costs: Report) -> str:
    cache, lengths = costs.cache, costs.lengths
    if cache is None:
        return ""
    tokens = max(lengths.length, lengths.past)
    size = cache.needed(lengths.batch, tokens, lengths.source)
    states = f", states {byte_text(cache.state_bytes)}" if cache.state_bytes else ""
    form = f", {cache.form}" if cache.form else ""
    return (
        f"Cache in fp16{form}: {byte_text(cache.bytes_per_token)} per token{states}, "
        f"{byte_text(size)} at {tokens:,} tokens."
    )


def artefact_details(entry: CatalogEntry, directory: str) -> str:
    """The HTML about an artefact in ``directory``: how to load it, its proof, quality, files and inputs."""
    return render(
        "catalog_artefact.html",
        entry=entry,
        place=directory,
        verification=Markup(verification_section(entry.record, entry.integrity, level=3)),
        quality=entry.record.build.quality if entry.record.build else None,
        inputs=_inputs(entry),
    )


def _inputs(entry: CatalogEntry) -> Iterator[tuple[str, str]]:
    inputs = entry.inputs()
    named = {**inputs["options"], **{f"{name} version": text for name, text in inputs["versions"].items()}}
    yield "weights", inputs["weights"]
    yield from (
        (name.replace("_", " "), str(value)) for name, value in named.items() if value not in (None, False)
    )
    yield "export.json", part("code", inputs["export"])
