"""The headline of a model's page: of an export its verdict and files, then what the model costs, then its sizes."""

from __future__ import annotations

from markupsafe import Markup

from zoo.core.units import byte_text, count_text
from zoo.record.integrity import Integrity
from zoo.record.manifest import ExportRecord
from zoo.reports.report import Report


def headline(report: Report, export: tuple[ExportRecord, Integrity] | None) -> dict[str, str]:
    """The main figures by name, the most wanted first."""
    return {**({} if export is None else _export(*export)), **_costs(report), **_sizes(report)}


def _export(record: ExportRecord, integrity: Integrity) -> dict[str, str]:
    manifest, verification = record.manifest, record.verification
    if not integrity.intact:
        verdict = "files changed"
    elif verification is None:
        verdict = "not verified"
    else:
        passed = sum(comparison.passed for comparison in verification.comparisons)
        verdict = f"{passed} of {len(verification.comparisons)} comparisons passed"
    size = sum(file.size for file in manifest.files.values())
    good = integrity.intact and verification is not None and verification.passed
    return {
        "verification": Markup('<span class="{}">{}</span>').format("good" if good else "bad", verdict),
        "files": f"{byte_text(size)} in {len(manifest.files)}",
        "exported for": f"{manifest.target}, {manifest.precision}",
    }


def _costs(report: Report) -> dict[str, str]:
    """Parameters, memory, and the FLOPs of each stage at the sizes of the report."""
    facts = {"parameters": f"{report.parameters:,}"}
    if report.active != report.parameters:
        facts["active per token"] = f"{report.active:,}"
    facts[f"files in {report.precision}"] = byte_text(report.weights[report.precision])
    lengths = report.lengths
    if report.cache is not None:
        tokens = max(lengths.length, lengths.past)
        size = report.cache.needed(lengths.batch, tokens, lengths.source)
        facts[f"cache at {tokens:,} tokens"] = byte_text(size)
    for name, stage in report.costs.stages.items():
        title = (
            "FLOPs per new token" if name == "step" else f"FLOPs of {name}, {lengths.tokens(name):,} tokens"
        )
        facts[title] = count_text(stage.total.at(**lengths.symbols(name)))
    step = report.training.activations.at(**lengths.symbols("train"))
    facts["memory to train"] = byte_text(report.state.total + step)
    return facts


def _sizes(report: Report) -> dict[str, str]:
    spec = report.spec
    contexts = (spec.context_length_of(stack) for _, stack in spec.stacks())
    facts = {
        "architecture": spec.architecture,
        "layers": " + ".join(str(stack.depth) for _, stack in spec.stacks()),
        "width": spec.widths_text,
        "vocabulary": f"{spec.vocab_size:,}" if spec.vocab_size else "",
        "context": " + ".join(f"{length:,}" for length in contexts if length),
    }
    return {name: value for name, value in facts.items() if value}
