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
    from zoo.reports.lengths import Lengths
    from zoo.reports.memory import CacheSizes
    from zoo.reports.report import Report
    from zoo.reports.roofline import Roof

DEVICES = ("h100", "l4")
"""The devices shown by default: a large one and a small one."""

_PRECISIONS = ("fp32", "fp16", "int8", "int4")
_MOST_DEVICES = 3
_JOINED = {"positions": "embedding", "norms": "other"}
"""Small roles, by the part that their share is shown with."""
_LAUNCH = 10e-6
"""Seconds that the launches of a call's kernels take on any device; less work than that bounds no call."""


def print_costs(screen: Screen, report: Report, target: str) -> None:
    """Print the title, and the costs in rows."""
    lengths = report.lengths
    inputs = "tokens" if report.spec.embedding_of(report.spec.last_stack).takes_tokens else "vectors"
    screen.title(
        report.spec.name,
        _parameters(report),
        f"{report.precision}, {lengths.batch:,} x {lengths.length:,} {inputs}",
    )
    names = [name for name in dict.fromkeys((*_PRECISIONS, report.precision)) if name in report.weights]
    sizes = ", ".join(f"{name} {byte_text(report.weights[name])}" for name in names)
    screen.row("files", sizes if target == "portable" else f"{sizes} (for {target})")
    if report.cache is not None:
        screen.row("cache", _cache(report.cache, lengths))
    screen.row("memory", _memory(report))
    screen.row("FLOPs", _flops(report))
    header, *lines = share_lines(
        [_joined({role.name: role.parameters for role in report.roles}), _flops_by_part(report)], row_width()
    )
    screen.row("shares", header)
    for label, line in zip(("params", "FLOPs"), lines, strict=True):
        screen.row(label, line)
    if report.devices:
        screen.row("bounds", *_bounds(report))
    if report.estimate_note:
        screen.row("note", report.estimate_note)


def _parameters(report: Report) -> str:
    if report.active == report.parameters:
        return f"{report.parameters:,} parameters"
    return f"{parameter_text(report.parameters)} parameters, {parameter_text(report.active)} active per token"


def _cache(cache: CacheSizes, lengths: Lengths) -> str:
    tokens = max(lengths.length, lengths.past)
    needed = byte_text(cache.needed(lengths.batch, tokens, lengths.source))
    if not cache.bytes_per_token:
        return f"{needed} of constant size"
    parts = [f"{byte_text(cache.bytes_per_token)} per token, {needed} for {lengths.batch:,} x {tokens:,}"]
    if cache.latent_bytes_per_token is not None:
        parts.append(f"({cache.form}; as latents {byte_text(cache.latent_bytes_per_token)} per token)")
    if cache.encoder:
        parts.append(f"and {lengths.source:,} of the encoder")
    if cache.windowed:
        parts.append("(some layers keep a window)")
    if cache.state_bytes:
        parts.append(f"(with states of {byte_text(lengths.batch * cache.state_bytes)})")
    return " ".join(parts)


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
        parts.append(
            f"{_stage(name)} {count}" + (f" after {report.lengths.past:,} tokens" if name == "step" else "")
        )
    return ", ".join(parts)


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


def _bounds(report: Report) -> Iterator[str]:
    """Headings, then the least time of each call on each device, and the largest batch."""
    stages = list(report.costs.stages)
    rows = [["", *map(_stage, stages), "largest batch"]]
    for roofline in report.rooflines[:_MOST_DEVICES]:
        times = [_bound((roofline.roofs or {}).get(stage)) for stage in stages]
        rows.append([device_name(roofline), *times, f"{roofline.largest_batch:,}"])
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        yield "  ".join(f"{cell:{width}}" for cell, width in zip(row, widths, strict=True)).rstrip()


def _stage(name: str) -> str:
    return "image" if name == "see" else name


def _bound(roof: Roof | None) -> str:
    if roof is None:
        return "-"
    return "launch-bound" if roof.seconds < _LAUNCH else f"{time_text(roof.seconds)} {roof.bound}"
