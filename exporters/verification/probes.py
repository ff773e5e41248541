"""``probe.npz``: one verified case, call by call, with which ONNX Runtime alone can repeat the comparison.

Each call has its graph, its inputs and its expected outputs. An input that is an output of an earlier call, such as a cache,
is stored as a reference to it. Caches are not compared, because later calls depend on them, nor is padding; large outputs are
sampled at a stride.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from exporters.target.session_options import session_entries
from exporters.verification.cases import Case
from zoo.core.state_names import is_present
from zoo.files.ownership import PROBE

FORMAT = 1
MOST = 2**16
"""The largest number of values stored per output."""

STARTS = 64
"""The number of values that are compared before whole arrays."""

ARITHMETIC = 1e-4
"""The tolerance for float32 on another processor, relative to the largest value (absolute below 1)."""

ROUNDING = 2
"""The tolerance for rounded activations on another provider, as a multiple of the rounding error on this one."""

Array = NDArray[Any]


@dataclass(frozen=True, eq=False)
class GraphCall:
    """One call of a graph: the name of its task, and arrays by the names of inputs and outputs."""

    task: str
    inputs: Mapping[str, Array]
    outputs: Mapping[str, Array]


@dataclass(frozen=True, eq=False)
class Probe:
    """The calls of one case: with the files, and with their exact form, which rounds no activations.

    ``tolerance`` is the largest tolerance of an output of the case.
    """

    case: str
    calls: Sequence[GraphCall]
    exact: Sequence[GraphCall]
    tolerance: float


def probed_case(cases: Iterable[Case]) -> Case | None:
    """Return the case to record: the smallest main case without in-place buffers."""
    recordable = [case for case in cases if case.main and not case.buffer]
    return min(recordable, key=lambda case: case.batch.inputs.numel() + len(case.pieces), default=None)


def write_probe(directory: Path, graphs: Mapping[str, str], probe: Probe) -> None:
    """Write the probe of an export; ``graphs`` are the paths in the directory by the names of tasks."""
    arrays: dict[str, Array] = {}
    calls: list[dict[str, Any]] = []
    for call, exact in zip(probe.calls, probe.exact, strict=True):
        calls.append(
            {
                "graph": graphs[call.task],
                "inputs": {
                    name: _reference(value, probe.calls[: len(calls)]) or _stored(arrays, value)
                    for name, value in call.inputs.items()
                },
                "outputs": {
                    name: _expected(
                        arrays, value, exact.outputs[name], _real_tokens(call, value), probe.tolerance
                    )
                    for name, value in call.outputs.items()
                    if value.dtype.kind == "f" and not is_present(name)
                },
            }
        )
    sessions = {path: session_entries(directory / path) for path in graphs.values()}
    record = {"format": FORMAT, "case": probe.case, "sessions": sessions, "calls": calls}
    np.savez_compressed(directory / PROBE, probe=np.array(json.dumps(record)), **arrays)  # type: ignore[arg-type]


def _reference(value: Array, earlier: Sequence[GraphCall]) -> dict[str, Any] | None:
    """Return the latest earlier call and output that an input comes from; None for new inputs."""
    for index in reversed(range(len(earlier))):
        for name, output in earlier[index].outputs.items():
            if value.size and output.dtype == value.dtype and _are_equal(output, value):
                return {"call": index, "output": name}
    return None


def _are_equal(output: Array, value: Array) -> bool:
    """Whether two arrays are equal: caches of different layers differ in their first values already."""
    return output.shape == value.shape and all(
        np.array_equal(output.reshape(-1)[:count], value.reshape(-1)[:count], equal_nan=True)
        for count in (STARTS, value.size)
    )


def _stored(arrays: dict[str, Array], value: Array) -> str:
    name = f"array{len(arrays)}"
    arrays[name] = value
    return name


def _real_tokens(call: GraphCall, value: Array) -> Array | None:
    """The flat indices of the real tokens of an output with one vector per token; None for other outputs."""
    mask, ids = call.inputs.get("attention_mask"), call.inputs.get("input_ids")
    if mask is None or ids is None or value.ndim != 3 or value.shape[:2] != ids.shape:
        return None
    return np.flatnonzero(mask[:, -ids.shape[1] :])


def _expected(
    arrays: dict[str, Array], value: Array, exact: Array, real: Array | None, tolerance: float
) -> dict[str, Any]:
    """Return the record of an expected output: values of its real tokens at a stride, and their tolerance."""
    if real is not None:
        value, exact = (values.reshape(-1, values.shape[-1])[real] for values in (value, exact))
    stride = -(-value.size // MOST) or 1
    kept = value.reshape(-1)[::stride]
    scale = max(1.0, float(np.abs(kept.astype(np.float64)).max(initial=0.0)))
    rounded = float(np.abs(value.astype(np.float64) - exact.astype(np.float64)).max(initial=0.0))
    return {
        "tokens": None if real is None else _stored(arrays, real),
        "values": _stored(arrays, kept),
        "stride": stride,
        "tolerance": max(ARITHMETIC * scale, tolerance) + ROUNDING * rounded,
    }
