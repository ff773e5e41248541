"""Memory and time on devices: the cache over the context, training, the roofline, and what fits where."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from typing import Any

from cli.studio.model_figures import ModelFigures
from zoo.reports.lengths import Lengths
from zoo.reports.memory import cache
from zoo.reports.report import Report
from zoo.reports.roofline import COMPUTED_IN, best_rate

_LONGEST = 2**17
"""The longest context that is drawn of a model without a limit, in tokens."""

_FIRST = 128
"""The shortest context in the table, in tokens, after the empty one."""


def cache_data(report: Report, base: ModelFigures) -> dict[str, Any] | None:
    """The cache by context, in bytes, and the base's cache; None for an encoder."""
    if report.cache is None:
        return None
    sizes, lengths = report.cache, report.lengths
    longest = report.room.longest or _LONGEST
    theirs = cache(base.folded, report.dtype)
    contexts = list(_contexts(longest, [group.window for group in sizes.own if group.window]))
    return {
        **sizes.as_dict(),
        "windowed": sizes.windowed,
        "contexts": contexts,
        "bytes": [sizes.needed(lengths.batch, context, lengths.source) for context in contexts],
        "base": theirs and [theirs.needed(lengths.batch, context, lengths.source) for context in contexts],
        "at": sizes.needed(lengths.batch, max(lengths.length, lengths.past), lengths.source),
        "held": sizes.held(lengths.batch, max(lengths.length, lengths.past), lengths.source),
    }


def _contexts(longest: int, windows: list[int]) -> Iterator[int]:
    """Powers of two up to the longest context, and the windows, where the curve bends."""
    powers = [_FIRST << power for power in range(40) if _FIRST << power < longest]
    yield from sorted({0, *powers, *(window for window in windows if window < longest), longest})


def training_data(report: Report) -> dict[str, Any]:
    """The memory of a training step, in bytes, and its FLOPs."""
    sizes, training = report.lengths.symbols("train"), report.training
    return {
        "state": report.state.as_dict(),
        "activations": training.activations.at(**sizes),
        "unfused": training.unfused.at(**sizes),
        "checkpointed": training.checkpointed.at(**sizes),
        "matmul": training.passes.total.at(**sizes),
        "matmul_checkpointed": training.passes.checkpointed.at(**sizes),
        "dtype": str(report.dtype).removeprefix("torch."),
    }


def roofline_data(report: Report) -> dict[str, Any]:
    """The bytes of the files, the demand of every call, and its bounds on each device, with the device's own limits."""
    computed = COMPUTED_IN[report.precision]
    return {
        "weights": dict(report.weights),
        "stages": {name: report.demand(name).as_dict() for name in report.costs.stages},
        "roofline": [
            {
                "name": bound.device.name,
                "summary": bound.device.summary,
                "memory": bound.device.memory,
                "bandwidth": bound.device.bandwidth,
                "rate": best_rate(bound.device, computed),
                "count": bound.count,
                "roofs": bound.roofs and {name: asdict(roof) for name, roof in bound.roofs.items()},
            }
            for bound in report.rooflines
        ],
    }


def fitting(figures: ModelFigures, lengths: Lengths) -> list[dict[str, Any]]:
    """For each precision: the weights in bytes, and for each device how many are needed and what fits."""
    rows = []
    for precision in figures.precisions:
        report = figures.report(lengths, precision)
        rows.append(
            {
                "precision": precision,
                "bytes": report.weights[precision],
                "need": report.need(lengths.batch, max(lengths.length, lengths.past)),
                "devices": [
                    {
                        "name": bound.device.name,
                        "count": bound.count,
                        "batch": bound.largest_batch,
                        "context": None if bound.fits_any_context else bound.largest_context,
                        "seconds": {name: roof.seconds for name, roof in (bound.roofs or {}).items()},
                    }
                    for bound in report.rooflines
                ],
            }
        )
    return rows
