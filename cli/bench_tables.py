"""What ``zoo bench`` has measured, as tables."""

from __future__ import annotations

from typing import TYPE_CHECKING

import typer

from cli.render import byte_text, console, table

if TYPE_CHECKING:
    from exporters.benching.bench import Report, Timing

NUMBERS = ("p50 ms", "p90 ms", "p99 ms", "seq/s", "tokens/s", "speed", "of bound")


def print_report(report: Report) -> None:
    """The times of every workload, the first variant's as the measure of the others', then what each variant takes."""
    out = console()
    columns = table("", "variant", *NUMBERS, right=NUMBERS)
    for group in report.timings:
        for timing in group:
            label = timing.workload.label if timing is group[0] else ""
            columns.add_row(label, timing.variant.label, *_figures(report, timing, group[0]))
    out.print(columns)
    out.print()
    sizes = ("load", "size", "peak memory")
    columns = table("variant", "provider", *sizes, "", right=sizes)
    for each in report.loaded:
        figures = ("", "", "") if each.fault else _sizes(each.load_seconds, each.size, each.peak)
        columns.add_row(each.variant.label, each.provider, *figures, each.fault)
    out.print(columns)
    out.print()
    bandwidth = report.bandwidth
    typer.echo(
        f"{report.threads} thread{'s' * (report.threads > 1)}; memory is read at {bandwidth.read / 1e9:.1f} GB/s, "
        f"copied at {bandwidth.copy / 1e9:.1f} GB/s (read and written). Speed is against the first variant; a step's "
        f"bound is reading its weights and cache once."
    )


def _figures(report: Report, timing: Timing, first: Timing) -> list[str]:
    work, share = timing.workload, report.bound_share(timing)
    times = [f"{timing.percentile(each) * 1000:.2f}" for each in (50, 90, 99)]
    rates = [f"{count / timing.median:,.1f}" for count in (work.batch, work.tokens)]
    return [*times, *rates, f"{first.median / timing.median:.2f}", "" if share is None else f"{share:.0%}"]


def _sizes(load: float, size: int, peak: int) -> tuple[str, str, str]:
    return f"{load:.2f} s", byte_text(size), byte_text(peak)
