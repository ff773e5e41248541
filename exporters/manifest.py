"""What an export records of itself: in the graphs' metadata, and in two files beside them."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any, Literal

import onnx

from exporters.checking import Checked
from exporters.quality.quality import Quality
from exporters.targets import OPERATIONS, QUANTIZED_CACHE, Target, minimum_runtime
from exporters.verification import Verification
from specs.model import Model
from specs.resolved import resolved
from zoo.destination import MANIFEST
from zoo.files.ownership import BUILD
from zoo.integrity import sha256_of
from zoo.manifest import (
    FORMAT,
    Build,
    CacheRecord,
    CheckRecord,
    FileRecord,
    GraphRecord,
    Manifest,
    QualityRecord,
    VerificationRecord,
)
from zoo.tracing.tasks import ENCODER, Task

_CODES: dict[int, Literal["int8", "int4"]] = {
    onnx.TensorProto.INT8: "int8",
    onnx.TensorProto.UINT8: "int4",
}
"""The precisions of quantized caches by ONNX's numbers of their element types."""


@dataclass(frozen=True)
class Export:
    """What was written: the directory, what it records of itself, the verification, and what rounding changes.

    ``unjudged`` says why there is no ``quality`` where rounding could have been judged.
    """

    directory: Path
    manifest: Manifest
    build: Build
    verification: Verification | None
    quality: Quality | None = None
    unjudged: str = ""

    @property
    def files(self) -> dict[str, int]:
        """The size of each file in bytes."""
        return {name: file.size for name, file in self.manifest.files.items()}

    @property
    def graphs(self) -> dict[str, dict[str, Any]]:
        """What a client wants to know of each graph, as JSON data."""
        return {name: graph.model_dump(mode="json") for name, graph in self.manifest.graphs.items()}

    def as_dict(self) -> dict[str, Any]:
        """Both records as JSON data, without the directory, which may move."""
        build = self.build.model_dump(mode="json", include={"weights_from", "verification", "quality"})
        return {**self.manifest.model_dump(mode="json"), **build}


def write_records(
    directory: Path,
    manifest: Manifest,
    weights_from: str,
    verification: Verification | None,
    quality: Quality | None,
) -> Build:
    """Write ``export.json``, and the ``build.json`` that speaks of it; gives the latter."""
    content = (manifest.model_dump_json(indent=2) + "\n").encode()
    (directory / MANIFEST).write_bytes(content)
    build = Build(
        format=FORMAT,
        export=hashlib.sha256(content).hexdigest(),
        weights_from=weights_from,
        verification=None
        if verification is None
        else VerificationRecord.model_validate_json(json.dumps(verification.as_dict())),
        quality=None if quality is None else QualityRecord.model_validate_json(json.dumps(quality.as_dict())),
    )
    (directory / BUILD).write_text(build.model_dump_json(indent=2) + "\n", "utf-8")
    return build


def file_records(directory: Path, known: Mapping[str, FileRecord]) -> dict[str, FileRecord]:
    """The record of every file in a directory, in the order of their names; digests that are known are not made again."""
    paths = sorted(path for path in directory.rglob("*") if path.is_file())
    names = {path.relative_to(directory).as_posix(): path for path in paths}
    return {
        name: known.get(name) or FileRecord(size=path.stat().st_size, sha256=sha256_of(path))
        for name, path in names.items()
    }


def metadata_of(spec: Model, target: Target, precision: str, weights: str) -> dict[str, str]:
    """The metadata of a graph: a function of the inputs alone, and nothing that the machine decides."""
    return {
        "zoo.version": version("zoo"),
        "zoo.torch": version("torch"),
        "zoo.spec": json.dumps(resolved(spec)),
        "zoo.target": target.name,
        "zoo.precision": precision,
        "zoo.weights": weights,
    }


def cache_record(model: onnx.ModelProto) -> CacheRecord | None:
    """How a client holds the keys and values of a graph's own tokens, or None where it has none."""
    caches = [value for value in model.graph.input if value.name.startswith("past_key_values")]
    if not caches:
        return None
    fixed = [length for length in (_shape(value)[2] for value in caches) if isinstance(length, int)]
    if fixed:
        return CacheRecord(kind="shared", padding="right", length=fixed[0])
    shared = any(node.op_type == "GroupQueryAttention" for node in model.graph.node)
    if not shared:
        return CacheRecord()
    codes = _CODES.get(caches[0].type.tensor_type.elem_type)
    return CacheRecord(kind="shared", padding="right", precision=codes)


def longest_sequence(task: Task, spec: Model) -> int | None:
    """The most tokens that a graph takes of a row, with those before them and with padding; None where nothing limits it.

    Beyond it tables of positions and of rotations end, and with them ONNX Runtime's call.
    """
    stack = spec.encoder if task.name == ENCODER else spec.last_stack
    assert stack is not None
    return task.places or spec.context_length_of(stack)


def graph_record(
    model: onnx.ModelProto, checked: Checked, longest: int | None, unfused: Sequence[str] = ()
) -> GraphRecord:
    """What a client wants to know of a graph before it loads it; ``longest`` is the most tokens of a row that it takes."""
    opset = next(entry.version for entry in model.opset_import if entry.domain == "")
    used = Counter(node.op_type for node in model.graph.node)
    return GraphRecord(
        nodes=len(model.graph.node),
        opset=opset,
        ir_version=model.ir_version,
        minimum_runtime=f"onnxruntime {minimum_runtime(opset, [*used, *_quantized_caches(model)])}",
        operations={name: used[name] for name in OPERATIONS if name in used},
        unfused=tuple(unfused),
        checked=CheckRecord(**checked.as_dict()),
        context_length=longest,
        inputs={value.name: _shape(value) for value in model.graph.input},
        outputs={value.name: _shape(value) for value in model.graph.output},
    )


def _quantized_caches(model: onnx.ModelProto) -> list[str]:
    """The name under which :data:`exporters.targets.OPERATIONS` has attention with a quantized cache, where there is one."""
    cached = any(
        attribute.name == "kv_cache_bit_width" for node in model.graph.node for attribute in node.attribute
    )
    return [QUANTIZED_CACHE] if cached else []


def _shape(value: onnx.ValueInfoProto) -> tuple[int | str, ...]:
    return tuple(dim.dim_param or dim.dim_value for dim in value.type.tensor_type.shape.dim)
