"""Tables of ``zoo bench``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cli.terminal.render import Column, print_table, say
from cli.terminal.screen import Screen, screen_width
from zoo.core.units import byte_text

if TYPE_CHECKING:
    from exporters.benchmark.bench import BenchmarkReport, Timing

_TIMES = [
    Column("workload", prose=12, pinned=True),
    Column("variant", prose=12, pinned=True),
    Column("p50 ms", right=True),
    Column("p90 ms", right=True, rank=3),
    Column("p99 ms", right=True, rank=2),
    Column("seq/s", right=True, rank=4),
    Column("tokens/s", right=True, rank=1),
    Column("speed", right=True),
    Column("of bound", right=True),
]
_ACCEPTED = Column("accepted", right=True)
_VARIANTS = [
    Column("variant", prose=12, pinned=True),
    Column("provider", rank=1),
    Column("load", right=True),
    Column("size", right=True),
    Column("peak memory", right=True),
]
_QUALITY = Column("quality against float", right=True)
_FAULT = Column("fault", prose=24)


def print_report(screen: Screen, report: BenchmarkReport) -> None:
    """Print the times of every workload relative to the first variant, then the load time and memory of each variant.

    Without ``--verbose``, tables are as wide as the screen.
    """
    from exporters.quality.quality import abbreviated

    width = None if screen.tables else screen_width()
    screen.title("Medians", f"on {report.device}, {_threads(report)}; speed relative to the first variant")
    drafted = any(timing.acceptance is not None for group in report.timings for timing in group)
    columns = [*_TIMES, *([_ACCEPTED] if drafted else [])]
    kept = [index for index, column in enumerate(columns) if screen.tables or column.rank <= 1]
    rows = []
    for group in report.timings:
        for timing in group:
            label = timing.workload.label if timing is group[0] else ""
            rows.append([label, timing.variant.label, *_figures(report, timing, group[0])])
    print_table([columns[index] for index in kept], [[row[index] for index in kept] for row in rows], width)
    say()
    failed = any(loaded.fault for loaded in report.loaded)
    judged = {loaded.variant: abbreviated(loaded.quality) for loaded in report.loaded}
    rows = []
    for loaded in report.loaded:
        figures = ("", "", "") if loaded.fault else _sizes(loaded.load_seconds, loaded.size, loaded.peak)
        quality = [judged[loaded.variant]] if any(judged.values()) else []
        rows.append(
            [loaded.variant.label, loaded.provider, *figures, *quality, *([loaded.fault] if failed else [])]
        )
    columns = [*_VARIANTS, *([_QUALITY] if any(judged.values()) else []), *([_FAULT] if failed else [])]
    print_table(columns, rows, width)
    if not screen.tables:
        return
    say()
    bandwidth = report.bandwidth
    say(
        f"On {report.device}, {_threads(report)}; memory bandwidth {byte_text(bandwidth.read)}/s read, "
        f"{byte_text(bandwidth.copy)}/s copied (read and written). Speed is relative to the first variant; a step's "
        f"bound is the time to read its weights and cache once."
    )


def _threads(report: BenchmarkReport) -> str:
    return f"{report.threads} thread{'s' * (report.threads > 1)}"


def _figures(report: BenchmarkReport, timing: Timing, first: Timing) -> list[str]:
    work, share = timing.workload, report.bound_share(timing)
    times = [f"{timing.percentile(percent) * 1000:.2f}" for percent in (50, 90, 99)]
    rates = [f"{count / timing.median:,.1f}" for count in (work.batch, work.tokens)]
    shares = ["" if part is None else f"{part:.0%}" for part in (share, timing.acceptance)]
    return [*times, *rates, f"{first.median / timing.median:.2f}", *shares]


def _sizes(load: float, size: int, peak: int) -> tuple[str, str, str]:
    return f"{load:.2f} s", byte_text(size), byte_text(peak)
