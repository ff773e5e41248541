"""The parts of a catalog that are shown on demand: of each model its drawing and costs, of each artefact its proof and files."""

from __future__ import annotations

from html import escape

from specs.forms.resolved import resolved
from specs.language.writing import dump
from specs.model.model import Model
from zoo.catalog.entries import CatalogEntry
from zoo.core.units import byte_text
from zoo.drawing import draw_svg
from zoo.pages.costs import TELLS
from zoo.pages.markup import code, scrolling, table
from zoo.pages.verification import verification_section
from zoo.record.records import QualityRecord
from zoo.reports.report import Report, report


def model_details(spec: Model) -> str:
    """The HTML about a model: what it is, what it costs, its drawing and its spec."""
    figures = report(spec)
    source = f'<p class="quiet">{escape(spec.source)}</p>' if spec.source else ""
    return (
        f"<h3>{escape(spec.name)}</h3><p>{escape(spec.summary)}</p>{source}{_facts(figures)}"
        f"<h3>Costs</h3>{_costs(figures)}"
        f"<h3>Architecture</h3>{scrolling('Drawing', draw_svg(spec))}"
        f"<details><summary>Spec</summary><pre>{escape(dump(resolved(spec)))}</pre></details>"
    )


def _facts(figures: Report) -> str:
    spec = figures.spec
    lengths = [spec.context_length_of(stack) for _, stack in spec.stacks()]
    facts = {
        "architecture": spec.architecture,
        "parameters": f"{figures.parameters:,}",
        "active per token": f"{figures.active:,}" if figures.active != figures.parameters else "",
        "layers": " + ".join(str(stack.depth) for _, stack in spec.stacks()),
        "width": spec.widths_text,
        "vocabulary": f"{spec.vocab_size:,}" if spec.vocab_size else "",
        "context": " + ".join(f"{length:,}" for length in lengths if length),
    }
    return definitions(facts)


def definitions(facts: dict[str, str]) -> str:
    """Facts by name, without those that are empty."""
    pairs = "".join(
        f"<div><dt>{escape(name)}</dt><dd>{escape(value)}</dd></div>"
        for name, value in facts.items()
        if value
    )
    return f'<dl class="facts">{pairs}</dl>'


def _costs(figures: Report) -> str:
    lengths, rows = figures.lengths, []
    for name, stage in figures.costs.stages.items():
        symbols = lengths.symbols(name)
        tokens = lengths.source if name in ("encode", "see") else symbols["T"]
        sizes = f"{tokens:,} tokens" if tokens > 1 else f"1 token after {symbols['P']:,}"
        rows.append([name, escape(TELLS[name]), sizes, f"{stage.total.at(**symbols) / 1e9:,.2f} GFLOPs"])
    body = table("Costs", ("stage", "what it computes", "at", "matrix products"), rows, ("matrix products",))
    if figures.cache is not None:
        tokens = max(lengths.length, lengths.past)
        size = figures.cache.needed(lengths.batch, tokens, lengths.source)
        states = f", states {byte_text(figures.cache.state_bytes)}" if figures.cache.state_bytes else ""
        body += (
            f"<p>Cache in fp16: {byte_text(figures.cache.bytes_per_token)} per token{states}, "
            f"{byte_text(size)} at {tokens:,} tokens.</p>"
        )
    return body


def artefact_details(entry: CatalogEntry, directory: str) -> str:
    """The HTML about an artefact in the directory ``place``: how to load it, its proof, quality, files and inputs."""
    quality = entry.record.build.quality if entry.record.build else None
    return (
        _usage(entry, directory)
        + verification_section(entry.record, entry.integrity)
        + (_quality(quality) if quality else "")
        + _files(entry)
        + _inputs(entry)
    )


def _usage(entry: CatalogEntry, directory: str) -> str:
    usage = entry.usage
    about = f"Run in {code(directory)}; needs {escape(', '.join(usage.packages))}. {escape(usage.note)}"
    return (
        f"<h3>Load it with {escape(entry.client)}</h3><p>{about}</p>"
        f'<pre class="usage"><code>{escape(usage.code)}</code></pre>'
    )


def _quality(quality: QualityRecord) -> str:
    rows = [[escape(name), f"{value:.4g}"] for name, value in quality.figures.items()]
    about = f"On {quality.inputs}, compared with {quality.reference}."
    if quality.budget is not None:
        about += f" Limit of {quality.budget.measure}: {quality.budget.limit:g}."
    verdict = (
        '<p class="good">Within the limit.</p>' if quality.passed else '<p class="bad">Past the limit.</p>'
    )
    figures = table("Quality", ("figure", "value"), rows, ("value",))
    return f"<h3>Quality</h3><p>{escape(about)}</p>{verdict if quality.budget else ''}{figures}"


def _files(entry: CatalogEntry) -> str:
    rows = [
        [code(name), byte_text(file.size), code(file.sha256)] for name, file in entry.manifest.files.items()
    ]
    return f"<h3>Files</h3>{table('Files', ('file', 'size', 'SHA-256'), rows, ('size',))}"


def _inputs(entry: CatalogEntry) -> str:
    inputs = entry.inputs()
    named = {
        **inputs["options"],
        **{f"{name} version": version for name, version in inputs["versions"].items()},
    }
    rows = [["weights", escape(inputs["weights"])]]
    rows += [
        [escape(name.replace("_", " ")), escape(str(value))]
        for name, value in named.items()
        if value not in (None, False)
    ]
    rows.append(["export.json", code(inputs["export"])])
    return f"<details><summary>Made from</summary>{table('Made from', ('input', 'value'), rows)}</details>"
