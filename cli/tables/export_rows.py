"""Rows of default screens about an export: its files, its verification and its quality."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from cli.tables.export_tables import quantized_lines
from cli.tables.model_rows import reduced
from cli.terminal.screen import Line, Screen, bad, doubtful, good, row_width
from zoo.core.units import byte_text

if TYPE_CHECKING:
    from exporters.quality.quality import Quality
    from exporters.steps.advice import Advice
    from exporters.steps.manifest import Export
    from exporters.verification.result import OutputComparison, Verification
    from zoo.record.manifest import AdapterRecord

_ROUNDING = ("QuantizeLinear", "DequantizeLinear")
_LISTED = 5
"""Number of outputs listed that differ."""


def export_rows(screen: Screen, written: Export, advised: Sequence[Advice]) -> None:
    """Print the files, the verification, the quality, and what a user should know before using the files."""
    manifest = written.manifest
    screen.row("export", *_files(written))
    for name, facts in manifest.graphs.items():
        if facts.placement is not None and facts.placement.on_cpu:
            count = sum(facts.placement.on_cpu.values())
            provider = facts.placement.provider.removesuffix("ExecutionProvider")
            screen.row(
                "", doubtful(f"{name}: {count} nodes run on the CPU, because {provider} has no kernel")
            )
    if written.verification is None:
        screen.row("verify", doubtful("not compared with PyTorch (--no-verify)"))
    else:
        verification_row(screen, written.verification)
    _adapters_row(screen, written)
    _quality_row(screen, written)
    for line, complete in quantized_lines(manifest):
        screen.row("codes", line if complete else doubtful(line))
    unfused = dict.fromkeys(
        reason.partition(":")[0] for graph in manifest.graphs.values() for reason in graph.unfused
    )
    if unfused:
        screen.row(
            "unfused",
            doubtful(_fitting(unfused)),
            *(f"{change.change} would fuse {', '.join(change.fuses)}" for change in advised),
        )
    if manifest.weights == "random":
        screen.row(
            "weights",
            (doubtful("random"), f", seed {manifest.seed}: pass --weights PATH to export a trained model"),
        )
    elif manifest.weights != "none":
        screen.row("weights", written.build.weights_from)


def _adapters_row(screen: Screen, written: Export) -> None:
    """Print the adapters that can be switched on, the largest difference with each, and its figure of quality."""
    adapters = written.build.adapters
    if not adapters:
        return
    done = [
        f"{name} {adapter.largest:.1e}{_judged(adapter)}"
        for name, adapter in adapters.items()
        if adapter.largest is not None
    ]
    if done:
        screen.row("adapters", (good("passed"), f", largest difference with each: {_fitting(done, 40)}"))
    if len(done) < len(adapters):
        screen.row("adapters", doubtful(f"{', '.join(adapters)}: not compared with PyTorch"))


def _judged(adapter: AdapterRecord) -> str:
    """The figure of an adapter that has a budget, such as `` (KL 9.88e-03)``; empty if it was not judged."""
    from exporters.quality.quality import abbreviated

    figure = "" if adapter.quality is None else abbreviated(adapter.quality.figures)
    return f" ({figure})" if figure else ""


def _files(written: Export) -> Iterator[Line]:
    manifest = written.manifest
    sizes = [f"{name} {byte_text(manifest.files[name].size)}" for name in manifest.model_files]
    if manifest.weights == "none":
        sizes.append("no weights")
    opset = max(graph.opset for graph in manifest.graphs.values())
    layout = "" if manifest.layout == "onnx" else f", layout {manifest.layout}"
    facts = f"{manifest.precision} for {manifest.target}, opset {opset}{layout}"
    together = f"{', '.join(sizes)}; {facts}"
    yield from [together] if len(together) <= row_width() else [", ".join(sizes), facts]
    counts = Counter[str]()
    for graph in manifest.graphs.values():
        counts.update({name: count for name, count in graph.operations.items() if name not in _ROUNDING})
    if counts and manifest.target != "portable":
        yield f"fused: {_fitting([f'{count} {name}' for name, count in counts.most_common()], len('fused: '))}"


def _fitting(words: Iterator[str] | Sequence[str] | dict[str, None], used: int = 0) -> str:
    """The words that fit one line, with commas; three dots for the rest."""
    shown: list[str] = []
    for word in words:
        if shown and len(", ".join([*shown, word, "..."])) > row_width() - used:
            return ", ".join([*shown, "..."])
        shown.append(word)
    return ", ".join(shown)


def verification_row(screen: Screen, verification: Verification) -> None:
    """Print the verdict, the largest difference and what is allowed there, the cases, and the runtime."""
    from exporters.verification.result import EMULATED

    comparisons = verification.comparisons
    cases = len({comparison.case for comparison in comparisons})
    provider = verification.provider.removesuffix("ExecutionProvider")
    where = f"{cases} case{'s' * (cases != 1)}, {verification.runtime} on {provider}"
    lines: list[Line] = []
    if failed := [comparison for comparison in comparisons if not comparison.passed]:
        lines = [
            bad(f"{len(failed)} of {len(comparisons)} outputs differ"),
            where,
            *map(_difference, sorted(failed, key=lambda comparison: -comparison.max_abs)[:_LISTED]),
        ]
    else:
        largest = max(comparisons, key=lambda comparison: comparison.max_abs)
        verdict = good("passed") if verification.passed else bad("failed")
        difference = f"largest difference {largest.max_abs:.1e} ({largest.tolerance:.1e} allowed)"
        lines = [(verdict, f", {difference}"), f"PyTorch against {where.partition(', ')[2]}, {cases} cases"]
    lines += reduced(verification.subject)
    if verification.not_run:
        lines.append(doubtful(f"not tested on {verification.not_run.removesuffix('ExecutionProvider')}"))
    if verification.ran == EMULATED:
        lines.append(doubtful(f"run: {verification.ran}"))
    if inconclusive := len(verification.in_rounding):
        lines.append(
            doubtful(
                f"{inconclusive} of {len(comparisons)} outputs inconclusive: the model amplifies rounding error"
            )
        )
    lines += [(good if engine.passed else bad)(str(engine)) for engine in verification.engines]
    screen.row("verify", *lines)


def _difference(comparison: OutputComparison) -> str:
    figure = comparison.fault or f"{comparison.max_abs:.1e} ({comparison.tolerance:.1e} allowed)"
    return f"{comparison.case}, {comparison.output}: {figure}"


def _quality_row(screen: Screen, written: Export) -> None:
    verification = written.verification
    if written.quality is not None:
        screen.row("quality", quality_line(written.quality))
    elif written.unjudged:
        screen.row("quality", doubtful(f"not measured: {written.unjudged}"))
    elif (
        verification is not None
        and verification.top_token is not None
        and verification.worst_weight is not None
    ):
        moved = "" if verification.moved is None else f", outputs move by up to {verification.moved:.1e}"
        screen.row(
            written.manifest.precision, f"same top token for {verification.top_token:.1%} of tokens{moved}"
        )


def quality_line(quality: Quality) -> Line:
    """The figure that the budget limits, and the budget; then the figure that readers know best."""
    from exporters.quality.budget import KL
    from exporters.quality.quality import MEASURES

    budget, figures = quality.budget, quality.figures
    shown = [budget.measure] if budget is not None else []
    shown += [
        name
        for name in ("top_token", "same_neighbours", "same_matches", "token_error_rate")
        if name in figures
    ]
    parts = []
    for name in shown or [*figures][:2]:
        limit = (
            f" ({'at most' if name == KL else 'at least'} {budget.limit:g})"
            if budget and name == budget.measure
            else ""
        )
        parts.append(f"{MEASURES[name].label} {figures[name]:{MEASURES[name].form}}{limit}")
    if quality.kinds:
        kind, value = quality.of_kinds()[0]
        parts.append(f"worst on {kind}: {value:{MEASURES[quality.main].form}}")
    text = ", ".join(parts)
    return text if quality.passed else bad(text)
