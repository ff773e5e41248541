"""From a spec to a directory of ONNX files that have been shown to compute what the spec says."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import torch

from exporters import data_file
from exporters.destination import MANIFEST, DestinationError, check_replaceable, check_space, readable_bytes, replacing
from exporters.memory import available_bytes
from exporters.targets import TARGETS, Target
from exporters.tasks import tasks
from exporters.verification import Verification, VerificationError, verify
from exporters.writing import DATA_FILE, Graph, place_weights, trace_and_lower, write_graphs
from specs.document import dump
from specs.model import Model
from specs.resolved import resolved
from zoo.builder import assemble
from zoo.twin import twin
from zoo.weights.materialize import materialize
from zoo.weights.open import open_weights
from zoo.weights.random import RandomWeights
from zoo.weights.source import WeightSource

COPIES = 3
"""Verification holds a model this many times: for PyTorch, for ONNX Runtime, and as packed for its kernels."""

SPARE = 300_000_000
"""Bytes left free beside them."""


@dataclass(frozen=True)
class Stage:
    """A step of an export that takes time: its name, and units done of units in total (0 where not known)."""

    name: str
    done: int = 0
    total: int = 0


Progress = Callable[[Stage], None]


@dataclass(frozen=True)
class Options:
    """How to export.  ``weights``: random, none, or a path to safetensors; ``verify``: compare with PyTorch."""

    target: str = "portable"
    weights: str = "random"
    seed: int = 0
    verify: bool = True


@dataclass(frozen=True)
class Export:
    """What was written."""

    directory: Path
    target: str
    precision: str
    weights: str
    files: dict[str, int]
    graphs: dict[str, dict[str, Any]]
    verification: Verification | None = field(default=None)

    def as_dict(self) -> dict[str, Any]:
        """As JSON data."""
        return {
            "zoo": version("zoo"),
            "target": self.target,
            "precision": self.precision,
            "weights": self.weights,
            "files": self.files,
            "graphs": self.graphs,
            "verification": None if self.verification is None else self.verification.as_dict(),
        }


def export(
    spec: Model, destination: Path, options: Options = Options(), progress: Progress = lambda stage: None
) -> Export:
    """Write the ONNX files of a spec to a directory, which appears when they have been verified.

    Raises a :class:`specs.errors.UserError` for whatever the user can mend, and
    :class:`exporters.verification.VerificationError` when the files do not compute what the model does.
    """
    check_replaceable(destination)
    target, dtype = TARGETS[options.target], torch.float32
    model = assemble(spec, dtype)
    source = None if options.weights == "none" else open_weights(options.weights, model, spec, seed=options.seed)
    progress(Stage("trace"))
    graphs = [trace_and_lower(model, task, target) for task in tasks(model, spec)]
    regions = data_file.lay_out(p for graph in graphs for p in graph.builder.parameters.values())
    size = data_file.total_bytes(regions)
    if source is not None:
        check_space(destination, size)
    subject = _subject(spec, model, size, source) if options.verify else None
    with replacing(destination) as directory:
        for graph in graphs:
            place_weights(graph, regions)
        if source is not None:
            _write_data(directory, regions, size, source, progress)
        metadata = _metadata(spec, target, source)
        write_graphs(directory, graphs, metadata)
        verification = None
        if subject is not None:
            with _subject_files(subject, spec, directory, target) as files:
                verification = _verified(files, subject, target, progress)
            metadata |= {"zoo.verification": _in_short(verification)}
            write_graphs(directory, graphs, metadata)
        (directory / "spec.yaml").write_text(dump(resolved(spec)))
        result = Export(
            directory=destination,
            target=target.name,
            precision="fp32",
            weights="none: graph only" if source is None else source.description,
            files={path.name: path.stat().st_size for path in sorted(directory.iterdir())},
            graphs={graph.file: _facts(graph) for graph in graphs},
            verification=verification,
        )
        (directory / MANIFEST).write_text(json.dumps(result.as_dict(), indent=2) + "\n")
    return result


def _write_data(
    directory: Path, regions: dict[str, data_file.Region], size: int, source: WeightSource, progress: Progress
) -> None:
    done = 0

    def advance(count: int) -> None:
        nonlocal done
        done += count
        progress(Stage("write weights", done, size))

    data_file.write(directory / DATA_FILE, regions, source, advance)


# ------------------------------------------------------------------------------------------------ verification


@dataclass(frozen=True)
class Subject:
    """What is verified: the exported model itself, or a twin with fewer layers where that does not fit in memory."""

    spec: Model
    source: WeightSource
    is_twin: bool
    description: str


def _subject(spec: Model, model: torch.nn.Module, size: int, source: WeightSource | None) -> Subject:
    """Raises :class:`DestinationError` where not even the smallest twin fits."""
    available = available_bytes() - SPARE
    if size * COPIES <= available:
        if source is not None:
            return Subject(spec, source, False, "the model itself")
        return Subject(spec, RandomWeights(model, spec), True, "the model with random weights")
    for layers in (4, 2, 1):
        small = twin(spec, layers)
        smaller = assemble(small)
        needed = COPIES * sum(parameter.nbytes for parameter in smaller.parameters())
        if needed <= available:
            depths = " + ".join(f"{a.depth} of {b.depth}" for (_, a), (_, b) in zip(small.stacks(), spec.stacks(), strict=True))
            return Subject(small, RandomWeights(smaller, small), True, f"a twin with {depths} layers and random weights")
    raise DestinationError(
        f"verification needs {readable_bytes(needed)} of memory even with one layer, and {readable_bytes(available)} "
        f"are free\n  verify on a larger machine, or export with --no-verify"
    )


@contextmanager
def _subject_files(subject: Subject, spec: Model, directory: Path, target: Target) -> Iterator[Path]:
    """A directory with the files to verify: the export itself, or those of its twin, made for the purpose."""
    if not subject.is_twin:
        yield directory
        return
    with TemporaryDirectory(dir=directory.parent, prefix=f".{directory.name}.twin-") as place:
        model = assemble(subject.spec)
        graphs = [trace_and_lower(model, task, target) for task in tasks(model, subject.spec)]
        regions = data_file.lay_out(p for graph in graphs for p in graph.builder.parameters.values())
        for graph in graphs:
            place_weights(graph, regions)
        _write_data(Path(place), regions, data_file.total_bytes(regions), subject.source, lambda stage: None)
        write_graphs(Path(place), graphs, {})
        yield Path(place)


def _verified(files: Path, subject: Subject, target: Target, progress: Progress) -> Verification:
    model = assemble(subject.spec)
    materialize(model, subject.source)
    graphs = tasks(model, subject.spec)
    return verify(
        files, model, subject.spec, graphs, target, subject.description, lambda case: progress(Stage(f"verify: {case}"))
    )


# ---------------------------------------------------------------------------------------------------- records


def _metadata(spec: Model, target: Target, source: WeightSource | None) -> dict[str, str]:
    return {
        "zoo.version": version("zoo"),
        "zoo.torch": torch.__version__,
        "zoo.spec": json.dumps(resolved(spec)),
        "zoo.target": target.name,
        "zoo.precision": "fp32",
        "zoo.weights": "none" if source is None else source.description,
    }


def _in_short(verification: Verification) -> str:
    return json.dumps(
        {
            "passed": verification.passed,
            "comparisons": len(verification.comparisons),
            "max_abs": verification.max_abs,
            "provider": verification.provider,
            "runtime": verification.runtime,
            "subject": verification.subject,
        }
    )


def _facts(graph: Graph) -> dict[str, Any]:
    onnx = graph.model.graph
    return {
        "nodes": len(onnx),
        "opset": graph.builder.opset,
        "ir_version": graph.model.ir_version,
        "minimum_runtime": f"onnxruntime {graph.minimum_runtime}",
        "inputs": {value.name: _shape(value) for value in onnx.inputs},
        "outputs": {value.name: _shape(value) for value in onnx.outputs},
    }


def _shape(value: Any) -> list[int | str | None]:
    return [dim if isinstance(dim, int) else dim.value for dim in value.shape]


__all__ = ["Export", "Options", "Stage", "VerificationError", "export"]
