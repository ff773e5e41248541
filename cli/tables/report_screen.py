"""The default screen of ``zoo report``."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from cli.tables.report_tables import device_name
from cli.tables.shares import share_lines
from cli.terminal.screen import Screen, row_width
from zoo.core.units import byte_text, count_text, parameter_text, time_text

if TYPE_CHECKING:
    from zoo.reports.report import Report

DEVICES = ("h100", "l4")
"""The devices shown by default: a large one and a small one."""

_PRECISIONS = ("fp32", "fp16", "int8", "int4")
_MOST_DEVICES = 3
_JOINED = {"positions": "embedding", "norms": "other"}
"""Small roles, by the part that their share is shown with."""
_LAUNCHES = 50e-6
"""Seconds below which launching the kernels of a call takes longer than their work."""


def print_rows(screen: Screen, report: Report, target: str) -> None:
    """Print the title, and the costs in rows."""
    lengths = report.lengths
    inputs = "tokens" if report.spec.embedding_of(report.spec.last_stack).takes_tokens else "vectors"
    screen.title(
        report.spec.name,
        _parameters(report),
        f"{report.precision}, {lengths.batch:,} x {lengths.length:,} {inputs}",
    )
    if not screen.rows:
        return
    names = [name for name in dict.fromkeys((*_PRECISIONS, report.precision)) if name in report.weights]
    sizes = ", ".join(f"{name} {byte_text(report.weights[name])}" for name in names)
    screen.row("weights", sizes if target == "portable" else f"{sizes} (for {target})")
    if report.cache is not None:
        screen.row("cache", _cache(report))
    screen.row("memory", _memory(report))
    screen.row("FLOPs", _flops(report))
    header, *lines = share_lines([_parameters_by_part(report), _flops_by_part(report)], row_width())
    screen.row("", header)
    for label, line in zip(("params", "FLOPs"), lines, strict=True):
        screen.row(label, line)
    for label, line in _devices(report):
        screen.row(label, line)
    if report.estimate_note:
        screen.row("note", report.estimate_note)


def _parameters(report: Report) -> str:
    if report.active == report.parameters:
        return f"{report.parameters:,} parameters"
    return f"{parameter_text(report.parameters)} parameters, {parameter_text(report.active)} active per token"


def _cache(report: Report) -> str:
    assert report.cache is not None
    lengths = report.lengths
    tokens = max(lengths.length, lengths.past)
    needed = report.cache.needed(lengths.batch, tokens, lengths.source)
    return (
        f"{byte_text(report.cache.bytes_per_token)} per token, "
        f"{byte_text(needed)} for {lengths.batch:,} x {tokens:,} tokens"
    )


def _memory(report: Report) -> str:
    lengths, symbols = report.lengths, report.lengths.symbols("train")
    running = byte_text(report.need(lengths.batch, max(lengths.length, lengths.past)))
    kept, checkpointed = (
        byte_text(report.state.total + activations.at(**symbols))
        for activations in (report.training.activations, report.training.checkpointed)
    )
    return f"{running} to run, {kept} to train with Adam ({checkpointed} checkpointed)"


def _flops(report: Report) -> str:
    parts = []
    for name, stage in report.costs.stages.items():
        count = count_text(stage.total.at(**report.lengths.symbols(name)))
        parts.append(f"{name} {count}" + (f" after {report.lengths.past:,} tokens" if name == "step" else ""))
    return ", ".join(parts)


def _parameters_by_part(report: Report) -> Mapping[str, int]:
    return _joined({role.name: role.parameters for role in report.roles})


def _flops_by_part(report: Report) -> Mapping[str, int]:
    """The FLOPs of one pass over all inputs, without a decoder's further steps."""
    counts = Counter[str]()
    for stage in report.costs.stages:
        if stage != "step":
            symbols = report.lengths.symbols(stage)
            counts.update({role: part.at(**symbols) for role, part in report.costs.by_role(stage).items()})
    return _joined(counts)


def _joined(counts: Mapping[str, int]) -> dict[str, int]:
    """The counts by part; a part below half a percent is not shown."""
    parts = Counter[str]()
    for role, count in counts.items():
        parts[_JOINED.get(role, role)] += count
    return {name: count for name, count in parts.items() if count * 200 >= parts.total()}


def _devices(report: Report) -> Iterator[tuple[str, str]]:
    """A heading, and a line for each device with its bounds and the largest batch."""
    shown = report.rooflines[:_MOST_DEVICES]
    if not shown:
        return
    stages = list(report.costs.stages)
    rows = []
    for roofline in shown:
        roofs = roofline.roofs or {}
        times = [
            f"{time_text(roofs[stage].seconds)} {roofs[stage].bound}" if stage in roofs else "-"
            for stage in stages
        ]
        rows.append((device_name(roofline), [*times, f"{roofline.largest_batch:,}"]))
    bounds = [roof.seconds for roofline in shown for roof in (roofline.roofs or {}).values()]
    short = " (launches take longer)" if bounds and max(bounds) < _LAUNCHES else ""
    header = [*stages, f"largest batch{short}"]
    widths = [max(map(len, column)) for column in zip(header, *(cells for _, cells in rows), strict=True)]
    for label, cells in (("at least", header), *rows):
        yield label, "   ".join(f"{cell:{width}}" for cell, width in zip(cells, widths, strict=True)).rstrip()
