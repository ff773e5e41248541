"""From a spec to a directory of ONNX files that have been shown to compute what the spec says."""

from __future__ import annotations

import functools
import json
import math
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path, PurePath
from tempfile import TemporaryDirectory

import onnx
import torch

from exporters import data_file
from exporters.cases import ROWS
from exporters.checking import check_graph
from exporters.graph import Graph
from exporters.layouts import LAYOUTS, Deployment, Layout, check_layout
from exporters.manifest import Export, cache_facts, graph_facts, metadata_of
from exporters.precisions import PRECISIONS, Precision, quantization_of
from exporters.proto import model_proto
from exporters.quantization.blocks import Blocks
from exporters.quantization.scheme import BLOCK_SIZES, Quantization
from exporters.reference import Reference
from exporters.static_cache import cache_length, check_cache
from exporters.stored_weights import take_stored
from exporters.subject import COPIES, Subject, check_memory, choose_subject, wiring_subject
from exporters.targets import OPERATIONS, TARGETS, Target
from exporters.verification import Verification, verify
from exporters.via_torch import export_via_torch
from exporters.writing import trace_and_lower, write_graphs
from specs.errors import UserError
from specs.model import Model
from specs.resolved import resolved
from specs.suggest import did_you_mean
from specs.writing import dump
from zoo.builder import ZooModel, assemble
from zoo.checkpoints.carried import carry_files
from zoo.destination import MANIFEST, check_destination, replacing
from zoo.progress import Progress, Stage
from zoo.tracing.tasks import Task, tasks_with_static_cache
from zoo.weights.held import HeldWeights
from zoo.weights.materialize import materialize
from zoo.weights.open import open_weights
from zoo.weights.source import WeightSource
from zoo.weights.tensors import weight_bytes, weight_tensors

SHAPING = ("via", "logits", "block_size", "asymmetric", "head_precision", "cache_length")
"""The options that shape the files, beside target, precision and layout."""


@dataclass(frozen=True)
class Options:
    """How to export.

    ``precision`` is how the weights are stored, of which ``block_size``, ``asymmetric`` and ``head_precision`` (that of
    embeddings and their heads) say more for int4;
    ``weights`` is random, none (the graph alone), or a path to safetensors; ``verify`` compares the files with the
    PyTorch model; ``via`` is fx, our tracer, or torch, PyTorch's exporter; ``layout`` is the client's that is to load the
    directory.  Raises :class:`specs.errors.UserError` where there is no such ``target``, ``via`` or ``layout``, or they
    do not go together.  ``cache_length`` is that of caches that do not grow, in tokens (default: the context length).
    """

    target: str = "portable"
    weights: str = "random"
    seed: int = 0
    verify: bool = True
    via: str = "fx"
    logits: str = "all"
    layout: str = "onnx"
    precision: str = "fp32"
    block_size: int = 32
    asymmetric: bool = False
    head_precision: str = "int8"
    cache_length: int | None = None

    def __post_init__(self) -> None:
        for option, value, known in (
            ("--target", self.target, TARGETS),
            ("--via", self.via, ("fx", "torch")),
            ("--logits", self.logits, ("all", "last")),
            ("--layout", self.layout, LAYOUTS),
            ("--precision", self.precision, PRECISIONS),
            ("--head-precision", self.head_precision, ("int4", "int8")),
        ):
            if value not in known:
                raise UserError(f"there is no {option} {value!r}: {did_you_mean(value, known)}")
        self._check_precision()
        if self.via == "torch" and self.weights == "none":
            raise UserError("--via torch needs weights: give --weights random or a path")
        if self.via == "torch" and self.layout != "onnx":
            raise UserError(f"--via torch writes --layout onnx, and not {self.layout}: export with --via fx")

    def _check_precision(self) -> None:
        if self.block_size not in BLOCK_SIZES:
            sizes = ", ".join(map(str, BLOCK_SIZES))
            raise UserError(f"there is no --block-size {self.block_size}: it is one of {sizes}")
        asked = {
            "--block-size": self.block_size != 32,
            "--asymmetric": self.asymmetric,
            "--head-precision": self.head_precision != "int8",
        }
        for option in (option for option, given in asked.items() if given and self.precision != "int4"):
            raise UserError(f"{option} is of --precision int4, and this is {self.precision}")
        if self.asymmetric and not TARGETS[self.target].zero_points:
            raise UserError(
                f"--asymmetric gives weights zero points, which --target {self.target} does not read\n  leave it out"
            )
        if self.via == "torch" and self.precision != "fp32":
            raise UserError(f"--via torch writes fp32 alone: give --via fx for {self.precision}")
        if self.head_precision == "int4" and not _looks_up(TARGETS[self.target]):
            able = " or ".join(name for name, target in TARGETS.items() if _looks_up(target))
            raise UserError(
                f"--target {self.target} looks up embeddings in 8 bits at least: give --head-precision int8, "
                f"or --target {able}"
            )


def _looks_up(target: Target) -> bool:
    """Whether a target looks up rows of 4 bits."""
    return target.takes("GatherBlockQuantized", torch.float16)


def export(
    spec: Model, destination: Path, options: Options = Options(), progress: Progress = lambda stage: None
) -> Export:
    """Write the ONNX files of a spec to a directory, which appears when they have been verified.

    Raises a :class:`specs.errors.UserError` for whatever the user can mend,
    :class:`exporters.verification.VerificationError` when the files do not compute what the model does, and
    :class:`exporters.checking.InvalidGraphError` when they are not valid ONNX.
    """
    precision = PRECISIONS[options.precision]
    model = assemble(spec, precision.dtype_on(TARGETS[options.target]))
    source = check_exportable(model, spec, destination, options)
    job = _Job(spec, model, source, options, progress)
    return job.via_torch(destination) if options.via == "torch" else job.via_fx(destination)


def data_places(spec: Model, options: Options) -> tuple[str, dict[str, data_file.Region]]:
    """The path of an export's data file in its directory, and where in it each weight lies."""
    model = assemble(spec, PRECISIONS[options.precision].dtype_on(TARGETS[options.target]))
    job = _Job(spec, model, None, options, lambda stage: None)
    graphs = job._graphs(model, spec)
    return job.layout.data_path(graphs[0].name), _regions(graphs)


def check_exportable(
    model: ZooModel, spec: Model, destination: Path, options: Options
) -> WeightSource | None:
    """What can be told before anything is done: wrong weights, and a place or a memory too small; gives the weights.

    Raises :class:`specs.errors.UserError`.
    """
    precision = PRECISIONS[options.precision]
    deployment = Deployment(model, spec, TARGETS[options.target], precision, options.weights)
    check_layout(LAYOUTS[options.layout], deployment)
    check_cache(spec, LAYOUTS[options.layout].target(deployment.target), options.cache_length)
    size = weight_bytes(model)
    source = (
        None if options.weights == "none" else open_weights(options.weights, model, spec, seed=options.seed)
    )
    if options.via == "torch":
        check_memory("--via torch", size * (1 + (COPIES if options.verify else 1)), "export with --via fx")
    values = sum(tensor.numel() for _, tensor in weight_tensors(model))
    check_destination(destination, 0 if source is None else precision.least_bytes(values))
    return source


def _nothing() -> None:
    """All is written."""


@dataclass(frozen=True)
class _Job:
    """One export under way; ``model`` is on the meta device."""

    spec: Model
    model: ZooModel
    source: WeightSource | None
    options: Options
    progress: Progress

    @property
    def target(self) -> Target:
        return self.layout.target(TARGETS[self.options.target])

    @property
    def layout(self) -> Layout:
        return LAYOUTS[self.options.layout].of_precision(self.options.precision)

    @property
    def precision(self) -> Precision:
        return PRECISIONS[self.options.precision]

    @property
    def _exact(self) -> bool:
        """Whether weights are stored as they are, and all is in float32: what rounding does shows in more cases."""
        return self.options.precision == "fp32"

    def via_fx(self, destination: Path) -> Export:
        self.progress(Stage("trace"))
        graphs = self._graphs(self.model, self.spec)
        if self.source is not None:
            check_destination(destination, data_file.total_bytes(_regions(graphs)))
        subject = (
            choose_subject(self.spec, self.model, self._held_bytes, self.source)
            if self.options.verify
            else None
        )
        with replacing(destination) as directory:
            files = self._messages(graphs)
            unfused = {self.layout.graph_path(graph.name): graph.unfused for graph in graphs}
            if subject is None:
                self._write_data(directory, graphs, self.source)
                return self._finish(destination, directory, files, None, unfused)
            reference = self._reference(subject)
            with ThreadPoolExecutor(1) as writer:

                @functools.cache
                def begin() -> Callable[[], None]:
                    if subject.is_twin:
                        return _nothing
                    return writer.submit(self._write_held, directory, graphs, subject, reference).result

                if self._exact:  # writing leaves the interpreter free: the wiring is shown meanwhile
                    begin()
                wiring = self._wiring_verified(directory, graphs)
                if subject.is_twin:
                    self._write_data(directory, graphs, self.source)
                with self._files(subject, reference, graphs, directory) as (place, theirs):
                    verification = self._verified(
                        place, subject, reference, theirs, begin, main_only=self._exact
                    )
            verification = verification.followed_by(wiring)
            return self._finish(destination, directory, files, verification, unfused)

    def via_torch(self, destination: Path) -> Export:
        assert self.source is not None
        subject = Subject(self.spec, self.source, is_twin=False, description="the model itself")
        reference = self._reference(subject)
        with replacing(destination) as directory:
            self.progress(Stage("torch.onnx.export"))
            given = self._tasks(reference.model, self.spec)
            graphs = export_via_torch(reference.model, given, directory)
            files = {
                self.layout.graph_path(task.name): graph for task, graph in zip(given, graphs, strict=True)
            }
            verification = None
            if self.options.verify:
                verification = self._verified(directory, subject, reference, [])
            return self._finish(destination, directory, files, verification)

    def _tasks(self, model: ZooModel, spec: Model) -> list[Task]:
        last_only = self.options.logits == "last"
        if not self.target.static_cache:
            return self.layout.tasks(model, spec, last_only)
        return tasks_with_static_cache(model, spec, cache_length(spec, self.options.cache_length), last_only)

    def _held_bytes(self, model: ZooModel, spec: Model) -> int:
        """The size of a model in float32, in which it is compared: of its weights, and of caches that do not grow, in the
        largest case."""
        task = self._tasks(model, spec)[-1]
        caches = [given.dims[1:] for given in task.inputs if task.places in given.dims[2:3]]
        places = sum(math.prod(dim for dim in dims if isinstance(dim, int)) for dims in caches)
        return 4 * (sum(tensor.numel() for _, tensor in weight_tensors(model)) + ROWS * places)

    def _graphs(self, model: ZooModel, spec: Model) -> list[Graph]:
        return [
            trace_and_lower(model, task, self.target, spec.context_length, self._quantization(task, spec))
            for task in self._tasks(model, spec)
        ]

    def _quantization(self, task: Task, spec: Model) -> Quantization | None:
        options = self.options
        decodes = spec.architecture != "encoder"
        return quantization_of(
            self.precision,
            self.target,
            decodes=decodes,
            graph_decodes=decodes and task.name != "encoder_model",
            blocks=Blocks(4, options.block_size, not options.asymmetric),
            table_bits=4 if options.head_precision == "int4" else 8,
        )

    def _assembled(self, spec: Model) -> ZooModel:
        """A model without weights, in the dtype that is not quantized."""
        return assemble(spec, self.precision.dtype_on(self.target))

    def _messages(self, graphs: list[Graph]) -> dict[str, onnx.ModelProto]:
        """The graphs by their paths in the directory."""
        regions = _regions(graphs)
        return {
            self.layout.graph_path(graph.name): model_proto(
                graph, regions, PurePath(self.layout.data_path(graph.name)).name
            )
            for graph in graphs
        }

    def _reference(self, subject: Subject) -> Reference:
        def fill() -> ZooModel:
            self.progress(Stage("fill the model to compare with"))
            model = assemble(subject.spec)
            materialize(model, subject.source)
            return model

        return Reference(subject.spec, fill)

    def _write_held(
        self, directory: Path, graphs: list[Graph], subject: Subject, reference: Reference
    ) -> None:
        """As ``_write_data``, from the weights that a model holds already."""
        self._write_data(directory, graphs, HeldWeights(reference.model, subject.source))

    def _write_data(self, directory: Path, graphs: list[Graph], source: WeightSource | None) -> None:
        """Write the data file of the graphs, or none where there are no weights.

        Where each graph has to have one of its own name, they are names of one file.
        """
        if source is None:
            return
        regions = _regions(graphs)
        done, size = 0, sum(region.length for region in regions.values())

        def advance(count: int) -> None:
            nonlocal done
            done += count
            self.progress(Stage("write weights", done, size))

        first, *others = dict.fromkeys(directory / self.layout.data_path(graph.name) for graph in graphs)
        first.parent.mkdir(exist_ok=True)
        data_file.write(first, regions, source, advance)
        for other in others:
            os.link(first, other)

    @contextmanager
    def _files(
        self, subject: Subject, reference: Reference, graphs: list[Graph], directory: Path
    ) -> Iterator[tuple[Path, list[Graph]]]:
        """A directory with the files to verify, and their graphs: the export itself, or those of its twin, made for it."""
        if not subject.is_twin:
            write_graphs(directory, self._messages(graphs), self._metadata())
            yield directory, graphs
            return
        with TemporaryDirectory(dir=directory.parent, prefix=f".{directory.name}.twin-") as name:
            place = Path(name)
            graphs = self._graphs(self._assembled(subject.spec), subject.spec)
            self._write_held(place, graphs, subject, reference)
            write_graphs(place, self._messages(graphs), {})
            yield place, graphs

    def _wiring_verified(self, directory: Path, graphs: list[Graph]) -> Verification:
        wanted = _fused(graphs)

        def alike(spec: Model) -> bool:
            """Whether a model has the same fused operations: a narrow one may not fit them."""
            return _fused(self._graphs(self._assembled(spec), spec)) == wanted

        subject = wiring_subject(self.spec, alike)
        reference = self._reference(subject)
        with self._files(subject, reference, [], directory) as (place, theirs):
            return self._verified(place, subject, reference, theirs)

    def _verified(
        self,
        place: Path,
        subject: Subject,
        reference: Reference,
        graphs: list[Graph],
        begin: Callable[[], Callable[[], None]] = lambda: _nothing,
        *,
        main_only: bool = False,
    ) -> Verification:
        def tell(case: str) -> None:
            self.progress(Stage(f"verify: {case}"))

        def take(model: ZooModel) -> dict[str, float]:
            path = place / self.layout.data_path(graphs[0].name)
            return take_stored(model, path, _regions(graphs))

        given = self._tasks(self._assembled(subject.spec), subject.spec)
        written = begin()  # assembling in another dtype sets that of all threads: it is over
        return verify(
            {place / self.layout.graph_path(task.name): task for task in given},
            reference,
            self.target,
            self.precision,
            subject.description,
            tell,
            written,
            None if self.options.precision == "fp32" else take,
            graphs[-1].padding if graphs else "either",
            main_only,
        )

    def _metadata(self, verification: Verification | None = None) -> dict[str, str]:
        weights = None if self.source is None else self.source.description
        return metadata_of(self.spec, self.target, self.options.precision, weights, verification)

    def _finish(
        self,
        destination: Path,
        directory: Path,
        files: Mapping[str, onnx.ModelProto],
        verification: Verification | None,
        unfused: Mapping[str, Sequence[str]] = {},
    ) -> Export:
        """Write the graphs with all they record, what a client reads beside them, the spec, and the manifest."""
        checked = {name: check_graph(name, graph) for name, graph in files.items()}
        write_graphs(directory, files, self._metadata(verification))
        cache = cache_facts([*files.values()][-1])
        self._write_settings(directory, shared=cache is not None and cache["kind"] == "shared")
        (directory / "spec.yaml").write_text(dump(resolved(self.spec)))
        result = Export(
            directory=destination,
            version=version("zoo"),
            target=self.target.name,
            providers=self.target.providers,
            precision=self.options.precision,
            layout=self.layout.name,
            options={name: getattr(self.options, name) for name in SHAPING},
            weights="none: the graph alone" if self.source is None else self.source.description,
            files={
                path.relative_to(directory).as_posix(): path.stat().st_size
                for path in sorted(directory.rglob("*"))
                if path.is_file()
            },
            graphs={
                name: graph_facts(graph, checked[name], unfused.get(name, ()))
                for name, graph in files.items()
            },
            cache=cache,
            verification=verification,
        )
        (directory / MANIFEST).write_text(json.dumps(result.as_dict(), indent=2) + "\n")
        return result

    def _write_settings(self, directory: Path, *, shared: bool) -> None:
        deployment = Deployment(self.model, self.spec, self.target, self.precision, self.options.weights)
        carry_files(deployment.origin, directory)
        for name, data in self.layout.settings(deployment, shared).items():
            (directory / name).write_text(json.dumps(data, indent=2) + "\n")


def _fused(graphs: list[Graph]) -> set[str]:
    """The operations that not every target has, of all graphs."""
    return {node.op for graph in graphs for node in graph.nodes if node.op in OPERATIONS}


def _regions(graphs: list[Graph]) -> dict[str, data_file.Region]:
    return data_file.lay_out(parameter for graph in graphs for parameter in graph.parameters.values())
