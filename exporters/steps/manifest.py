"""The records of an export: metadata in the graphs, and two files in the directory."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import onnx

from exporters.graph.checking import Checked
from exporters.graph.proto_bodies import bodies
from exporters.target.environment import required_environment
from exporters.target.kernels.placement import placement
from exporters.target.kernels.table import KernelTable
from exporters.target.runtimes import EXACT_SINCE, minimum_runtime, multiplies_integers
from exporters.target.session_options import exact_products
from exporters.target.targets import OPERATIONS, Padding, Target
from exporters.verification.result import Verification
from specs.base.result_table import ResultTable
from specs.base.tabular import Tabular
from specs.forms.resolved import resolved
from specs.model.model import Model
from zoo.core.state_names import is_past
from zoo.core.units import byte_text
from zoo.files.destination import MANIFEST
from zoo.files.ownership import BUILD, PROBE
from zoo.record.integrity import file_record
from zoo.record.manifest import FORMAT, AdapterRecord, Build, Manifest
from zoo.record.records import (
    CacheRecord,
    CheckRecord,
    FileRecord,
    GraphRecord,
    QualityRecord,
    VerificationRecord,
)
from zoo.tracing.task import Task

if TYPE_CHECKING:
    from exporters.quality.quality import Quality
    from exporters.steps.adapters import VerifiedAdapter

_CODES: dict[int, Literal["int8", "int4"]] = {
    onnx.TensorProto.INT8: "int8",
    onnx.TensorProto.UINT8: "int4",
}
"""The precisions of quantized caches by ONNX's codes of their element types."""


@dataclass(frozen=True)
class Export(Tabular):
    """The result of an export: the directory, its records, the verification, and the cost of rounding.

    ``unjudged`` is the reason why ``quality`` is missing where rounding could have been judged.
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

    def table(self) -> ResultTable:
        """The files with their sizes, and the result of the verification."""
        done = self.verification
        verified = (
            f"verified in {done.where}, largest difference {done.max_abs:.1e}" if done else "not verified"
        )
        title = f"{self.directory}: {self.manifest.target}, {self.manifest.precision}, {verified}"
        rows = [(name, byte_text(size)) for name, size in self.files.items()]
        return ResultTable(title, ("file", "size"), rows)

    @property
    def graphs(self) -> dict[str, dict[str, Any]]:
        """The record of each graph, as JSON data."""
        return {name: graph.model_dump(mode="json") for name, graph in self.manifest.graphs.items()}

    def as_dict(self) -> dict[str, Any]:
        """Both records as JSON data, without the directory, which may be moved."""
        build = self.build.model_dump(mode="json", include={"weights_from", "verification", "quality"})
        return {**self.manifest.model_dump(mode="json"), **build}


def write_records(
    directory: Path,
    manifest: Manifest,
    weights_from: str,
    verification: Verification | None,
    quality: Quality | None,
    adapters: Mapping[str, VerifiedAdapter],
) -> Build:
    """Write ``export.json`` and its ``build.json``; return the latter."""
    content = (manifest.model_dump_json(indent=2) + "\n").encode()
    probe = directory / PROBE
    (directory / MANIFEST).write_bytes(content)
    build = Build(
        format=FORMAT,
        export=hashlib.sha256(content).hexdigest(),
        weights_from=weights_from,
        verification=None
        if verification is None
        else VerificationRecord.model_validate_json(json.dumps(verification.as_dict())),
        quality=_quality_record(quality),
        probe=file_record(probe) if probe.is_file() else None,
        adapters={
            name: AdapterRecord(largest=adapter.largest, quality=_quality_record(adapter.quality))
            for name, adapter in adapters.items()
        },
    )
    (directory / BUILD).write_text(build.model_dump_json(indent=2) + "\n", "utf-8")
    return build


def _quality_record(quality: Quality | None) -> QualityRecord | None:
    return None if quality is None else QualityRecord.model_validate_json(json.dumps(quality.as_dict()))


def file_records(directory: Path, known: Mapping[str, FileRecord]) -> dict[str, FileRecord]:
    """The record of every file in a directory but its probe, in order of name; known digests are not computed again."""
    paths = sorted(path for path in directory.rglob("*") if path.is_file() and path.name != PROBE)
    names = {path.relative_to(directory).as_posix(): path for path in paths}
    return {name: known.get(name) or file_record(path) for name, path in names.items()}


installed_version = cache(version)
"""The version of an installed package, whose description is parsed once: PyTorch's takes milliseconds."""


def metadata_of(spec: Model, target: Target, precision: str, weights: str) -> dict[str, str]:
    """The metadata of a graph: a function of the inputs alone, independent of the machine."""
    return {
        "zoo.version": installed_version("zoo"),
        "zoo.torch": installed_version("torch"),
        "zoo.spec": json.dumps(resolved(spec)),
        "zoo.target": target.name,
        "zoo.core.precision": precision,
        "zoo.weights": weights,
    }


def cache_record(model: onnx.ModelProto, task: Task) -> CacheRecord | None:
    """How a client holds the state of a decoder; None for a graph without one."""
    states = [value for value in model.graph.input if is_past(value.name)]
    if not states:
        return None
    constant = tuple(value.name for value in states if value.name in task.constant)
    caches = [value for value in states if value.name not in task.constant]
    fixed = [length for length in (_shape(value)[2] for value in caches) if isinstance(length, int)]
    if fixed:
        return CacheRecord(kind="shared", padding="right", length=fixed[0], constant=constant)
    shared = any(node.op_type == "GroupQueryAttention" for node in model.graph.node)
    if not shared:
        return CacheRecord(constant=constant)
    codes = _CODES.get(caches[0].type.tensor_type.elem_type)
    windows = {name: cache.slots for name, cache in task.windows.items()}
    padding: Padding = "none" if windows else "right"
    return CacheRecord(kind="shared", padding=padding, precision=codes, constant=constant, windows=windows)


def graph_record(
    model: onnx.ModelProto,
    checked: Checked,
    longest: int | None,
    unfused: Sequence[str],
    kernels: KernelTable | None,
) -> GraphRecord:
    """The facts that a client needs before loading a graph; ``longest`` is the largest number of tokens in a
    row, and ``kernels`` are the kernels of the target's provider."""
    opset = next(entry.version for entry in model.opset_import if entry.domain == "")
    used = Counter(
        inner.op_type
        for node in model.graph.node
        for inner in (node, *(inner for body in bodies(node) for inner in body.node))
    )
    defaults = {tensor.name for tensor in model.graph.initializer}  # an adapter's matrices are inputs, too
    return GraphRecord(
        nodes=len(model.graph.node),
        opset=opset,
        ir_version=model.ir_version,
        minimum_runtime=f"onnxruntime {minimum_runtime(model)}",
        minimum_without_vnni=f"onnxruntime {EXACT_SINCE}" if multiplies_integers(used) else None,
        session_entries=exact_products(model.graph),
        environment=required_environment(opset),
        operations={name: used[name] for name in OPERATIONS if name in used},
        unfused=tuple(unfused),
        placement=None if kernels is None else placement(model, kernels),
        checked=CheckRecord(**checked.as_dict()),
        context_length=longest,
        inputs={value.name: _shape(value) for value in model.graph.input if value.name not in defaults},
        outputs={value.name: _shape(value) for value in model.graph.output},
    )


def _shape(value: onnx.ValueInfoProto) -> tuple[int | str, ...]:
    return tuple(dim.dim_param or dim.dim_value for dim in value.type.tensor_type.shape.dim)
