"""What an export records of itself: in the graphs' metadata, and in a manifest beside them."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

import onnx

from exporters.checking import Checked
from exporters.targets import OPERATIONS, Target, minimum_runtime
from exporters.verification import Verification
from specs.model import Model
from specs.resolved import resolved


@dataclass(frozen=True)
class Export:
    """What was written: the target and its providers, file sizes in bytes, and the facts of each graph.

    ``options`` are those of :data:`exporters.export.SHAPING`, with which the same files can be laid out again.
    """

    directory: Path
    version: str
    target: str
    providers: tuple[str, ...]
    precision: str
    layout: str
    options: dict[str, Any]
    weights: str
    files: dict[str, int]
    graphs: dict[str, dict[str, Any]]
    cache: dict[str, Any] | None
    verification: Verification | None

    def as_dict(self) -> dict[str, Any]:
        """As JSON data, without the directory, which may move."""
        return {
            "zoo": self.version,
            "target": self.target,
            "providers": list(self.providers),
            "precision": self.precision,
            "layout": self.layout,
            "options": self.options,
            "weights": self.weights,
            "files": self.files,
            "graphs": self.graphs,
            "cache": self.cache,
            "verification": None if self.verification is None else self.verification.as_dict(),
        }


def metadata_of(
    spec: Model, target: Target, precision: str, weights: str | None, verification: Verification | None
) -> dict[str, str]:
    """The metadata of a graph; the verification in short."""
    data = {
        "zoo.version": version("zoo"),
        "zoo.torch": version("torch"),
        "zoo.spec": json.dumps(resolved(spec)),
        "zoo.target": target.name,
        "zoo.precision": precision,
        "zoo.weights": weights or "none",
    }
    if verification is not None:
        short = {
            "passed": verification.passed,
            "comparisons": len(verification.comparisons),
            "max_abs": verification.max_abs,
            "provider": verification.provider,
            "not_run": verification.not_run,
            "runtime": verification.runtime,
            "subject": verification.subject,
        }
        data["zoo.verification"] = json.dumps(short)
    return data


def cache_facts(model: onnx.ModelProto) -> dict[str, Any] | None:
    """How a client holds the keys and values of a graph's own tokens, or None where it has none.

    ``kind`` is "shared" where past and present may be one buffer with room to spare, else "growing"; ``padding`` is the
    side on which rows are padded; ``length`` is that of the buffer, where the graph fixes it.
    """
    lengths = [_shape(value)[2] for value in model.graph.input if value.name.startswith("past_key_values")]
    if not lengths:
        return None
    fixed = [length for length in lengths if isinstance(length, int)]
    if fixed:
        return {"kind": "shared", "padding": "right", "length": fixed[0]}
    shared = any(node.op_type == "GroupQueryAttention" for node in model.graph.node)
    return {"kind": "shared", "padding": "right"} if shared else {"kind": "growing", "padding": "either"}


def graph_facts(model: onnx.ModelProto, checked: Checked, unfused: Sequence[str] = ()) -> dict[str, Any]:
    """What a client wants to know of a graph before it loads it."""
    opset = next(entry.version for entry in model.opset_import if entry.domain == "")
    used = Counter(node.op_type for node in model.graph.node)
    return {
        "nodes": len(model.graph.node),
        "opset": opset,
        "ir_version": model.ir_version,
        "minimum_runtime": f"onnxruntime {minimum_runtime(opset, used)}",
        "operations": {name: used[name] for name in OPERATIONS if name in used},
        "unfused": list(unfused),
        "checked": checked.as_dict(),
        "inputs": {value.name: _shape(value) for value in model.graph.input},
        "outputs": {value.name: _shape(value) for value in model.graph.output},
    }


def _shape(value: onnx.ValueInfoProto) -> list[int | str]:
    return [dim.dim_param or dim.dim_value for dim in value.type.tensor_type.shape.dim]
