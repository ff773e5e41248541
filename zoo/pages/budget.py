"""Memory and device bounds that depend on the sliders' sizes, as data for the page's script."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from specs.files.device import Device, FloatPrecision
from zoo.pages.costs import polynomial_data
from zoo.reports.expert_reads import BATCHES
from zoo.reports.memory import DTYPES, TrainingState
from zoo.reports.report import Report
from zoo.reports.roofline import COMPUTED_IN, THIS, best_rate
from zoo.reports.training import Training, trainings


def budget_data(report: Report) -> dict[str, Any]:
    """Counts of values and bytes as text, which may exceed JavaScript's numbers, and polynomials."""
    dtypes = list(dict.fromkeys(COMPUTED_IN[precision] for precision in report.weights))
    return {
        "chosen": report.precision,
        "precisions": {
            name: {"bytes": str(size), "computed": COMPUTED_IN[name]} for name, size in report.weights.items()
        },
        "values": str(report.stored_values),
        "itemsize": {name: DTYPES[name].itemsize for name in dtypes},
        "cache": _cache_data(report),
        "stages": {
            name: {
                "read": _read_data(report.costs.weights_by_share[name]),
                "outputs": polynomial_data(stage.outputs),
            }
            for name, stage in report.costs.stages.items()
        },
        "batches": BATCHES,
        "training": _training_data(report),
        "longest": report.room.longest,
        "seen": str(report.lengths.source),
        "devices": [_device_data(device, dtypes) for device in report.devices],
    }


def _cache_data(report: Report) -> dict[str, Any] | None:
    """Cached values per token of equal layers, with their window, per encoder token, and bytes of constant states."""
    if report.cache is None:
        return None
    own = [
        [str(cached.layers * cached.values), cached.window] for cached in report.cache.own if cached.values
    ]
    return {
        "own": own,
        "encoder": str(report.cache.encoder),
        "state": report.cache.state_bytes,
        "form": report.cache.form,
    }


def _read_data(read: Mapping[tuple[int, int] | None, int]) -> dict[str, Any]:
    """The weight values that a call reads: in total, and of experts by the number selected and the total."""
    routed = [[size, *share] for share, size in read.items() if share is not None]
    return {"fixed": read.get(None, 0), "routed": routed}


def _device_data(device: Device, dtypes: Iterable[FloatPrecision]) -> dict[str, Any]:
    """A device, its peak rate in each precision, and whether several can be used."""
    rates = {name: best_rate(device, name) for name in dtypes}
    return {
        "name": device.name,
        "summary": device.summary,
        "memory": device.memory,
        "bandwidth": device.bandwidth,
        "rates": rates,
        "alone": device.name == THIS,
    }


def _training_data(report: Report) -> dict[str, Any]:
    """FLOPs of the passes, and bytes of a training step by dtype size."""
    sizes = {dtype.itemsize: dtype for dtype in (DTYPES["fp32"], report.dtype, DTYPES["bf16"])}
    steps = trainings(report.spec, sizes.values())
    passes = next(iter(steps.values())).passes
    return {
        "passes": {
            "forward": polynomial_data(passes.forward),
            "backward": polynomial_data(passes.backward),
            "recomputed": polynomial_data(passes.layers),
        },
        "bytes": {
            str(size): _training_bytes(steps[dtype], TrainingState.of(report.folded, dtype))
            for size, dtype in sizes.items()
        },
    }


def _training_bytes(step: Training, state: TrainingState) -> dict[str, Any]:
    return {
        "state": {name: str(size) for name, size in state.as_dict().items() if name != "total"},
        "activations": polynomial_data(step.activations),
        "unfused": polynomial_data(step.unfused),
        "kept": polynomial_data(step.checkpointed.kept),
        "layers": [polynomial_data(layer) for layer in step.checkpointed.layers],
    }
