"""From a spec to a directory of ONNX files that have been shown to compute what the spec says."""

from __future__ import annotations

import functools
import json
import math
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from importlib.metadata import version
from pathlib import Path, PurePath
from tempfile import TemporaryDirectory
from typing import Literal

import onnx
import torch

from exporters import data_file
from exporters.cases import ROWS
from exporters.checking import check_graph
from exporters.digests import DataDigests, Place, external_places, followed
from exporters.exact_graph import unrounded_values
from exporters.graph import Graph
from exporters.layouts import LAYOUTS, Deployment, Layout, check_layout
from exporters.manifest import (
    Export,
    cache_record,
    file_records,
    graph_record,
    longest_sequence,
    metadata_of,
    write_records,
)
from exporters.mixed_precision import check_smallest, measured, planned, raised_limits, recorded_blocks
from exporters.precisions import PRECISIONS, Precision, quantization_of
from exporters.proto import model_proto
from exporters.quality.claim import Claim, Limits
from exporters.quality.inputs import Representative
from exporters.quality.judge import cases_of
from exporters.quality.quality import Quality
from exporters.quantization.calibrated import CalibratedWeights
from exporters.quantization.carried import carried_blocks, quantized_weights, weight_limits
from exporters.quantization.scheme import BLOCK_SIZES, Quantization
from exporters.quantization.size_budget import SizeBudget
from exporters.reference import Reference
from exporters.rounding import calibrated, rounded_for, roundings_of
from exporters.static_cache import cache_length, check_cache
from exporters.stored_weights import StoredWeight, stored_weights, take_stored
from exporters.subject import COPIES, Subject, check_memory, choose_subject, wiring_subject
from exporters.targets import OPERATIONS, TARGETS, Target
from exporters.verification import Verification
from exporters.verify import Proof, verify
from exporters.via_torch import export_via_torch
from exporters.writing import trace_and_lower, write_graphs
from specs.errors import UserError
from specs.head import VocabularyHead
from specs.model import Model
from specs.resolved import resolved
from specs.suggest import did_you_mean
from specs.writing import dump
from zoo.builder import ZooModel, assemble
from zoo.checkpoints.carried import carry_files, tokenizer_origin
from zoo.destination import check_destination, replacing
from zoo.manifest import FORMAT, InputsRecord, Manifest, MixedRecord, QuantizedRecord, ShapingRecord
from zoo.progress import Progress, Stage
from zoo.tracing.tasks import ENCODER, Task, tasks_with_static_cache
from zoo.weights.blocks import Blocks
from zoo.weights.held import HeldWeights
from zoo.weights.materialize import materialize
from zoo.weights.open import open_weights
from zoo.weights.source import WeightSource
from zoo.weights.tensors import weight_bytes, weight_tensors

SHAPING = ("via", "logits", "block_size", "asymmetric", "head_precision", "cache_length")
"""The options that shape the files, beside target, precision and layout."""

Judged = tuple[Quality, Representative] | None
"""What rounding changes, and on which inputs that was measured; None where it was not."""


@dataclass(frozen=True)
class Options:
    """How to export.

    ``precision`` is how the weights are stored, of which ``block_size``, ``asymmetric`` and ``head_precision`` (that of
    embeddings and their heads) say more for int4;
    ``weights`` is random, none (the graph alone), or a path to safetensors; ``verify`` compares the files with the
    PyTorch model; ``via`` is fx, our tracer, or torch, PyTorch's exporter; ``layout`` is the client's that is to load the
    directory.  Raises :class:`specs.errors.UserError` where there is no such ``target``, ``via`` or ``layout``, or they
    do not go together.  ``cache_length`` is that of caches that do not grow, in tokens (default: the context length).
    ``rounding`` is how int4 rounds: nearest, or gptq (:mod:`exporters.quantization.gptq`; the default for real weights of
    encoders and decoders).
    ``calibrate`` is a file of representative inputs (:mod:`exporters.quality.inputs`), for which real weights are rounded
    and on which they are judged; ``max_kl`` and ``min_cosine`` are what they may lose (default: :data:`exporters.quality.budget.LIMITS`).
    ``budget`` is the largest size of an int4 export of real weights, such as 105MB or 4.8bits per weight: matrices that lose
    most in 4 bits get 8 or 16 (:mod:`exporters.mixed_precision`).
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
    calibrate: Path | None = None
    max_kl: float | None = None
    min_cosine: float | None = None
    rounding: str | None = None
    budget: str | None = None

    def __post_init__(self) -> None:
        for option, value, known in (
            ("--target", self.target, TARGETS),
            ("--via", self.via, ("fx", "torch")),
            ("--logits", self.logits, ("all", "last")),
            ("--layout", self.layout, LAYOUTS),
            ("--precision", self.precision, PRECISIONS),
            ("--head-precision", self.head_precision, ("int4", "int8")),
            ("--rounding", self.rounding or "nearest", ("gptq", "nearest")),
        ):
            if value not in known:
                raise UserError(f"there is no {option} {value!r}: {did_you_mean(value, known)}")
        self._check_precision()
        if self.budget is not None:
            SizeBudget.parse(self.budget)
        self._check_quality()
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
            "--rounding": self.rounding is not None,
            "--budget": self.budget is not None,
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

    @property
    def judges(self) -> bool:
        """Whether what rounding changes is held to a budget: that of real weights, where anything is verified."""
        return self.verify and self._real and PRECISIONS[self.precision].rounds

    @property
    def calibrates(self) -> bool:
        """Whether weights are rounded for the inputs that they will see."""
        return self._real and self.precision == "int4" and self.rounding != "nearest"

    @property
    def _real(self) -> bool:
        return self.weights not in ("random", "none")

    def _check_quality(self) -> None:
        asked = {
            "--calibrate": self.calibrate,
            "--max-kl": self.max_kl,
            "--min-cosine": self.min_cosine,
        }
        given = [option for option, value in asked.items() if value is not None]
        if self.budget is not None and not self._real:
            raise UserError(
                f"--budget applies to real weights, whose rounding can be measured\n  value: {self.weights} weights\n"
                "  Pass --weights, or leave --budget out."
            )
        if self.rounding == "gptq" and not self._real:
            raise UserError(
                f"--rounding gptq is for weights that mean something, and these are {self.weights}\n"
                "  give --weights, or leave it out"
            )
        if given and not self.judges and not (given == ["--calibrate"] and (self.calibrates or self.budget)):
            why = (
                "is not verified"
                if not self.verify
                else f"has {self.weights} weights"
                if not self._real
                else f"is {self.precision}, which rounds nothing"
            )
            raise UserError(
                f"{given[0]} applies to real weights that are rounded and verified, and this export {why}\n  Leave it out."
            )
        if self.max_kl is not None and not 0 <= self.max_kl < math.inf:
            raise UserError(f"--max-kl must be 0 nats or more\n  value: {self.max_kl}\n  0.05 would work")
        if self.min_cosine is not None and not -1 <= self.min_cosine <= 1:
            raise UserError(
                f"--min-cosine must be from -1 to 1\n  value: {self.min_cosine}\n  0.99 would work"
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


def graphs_of(spec: Model, options: Options) -> dict[str, Task]:
    """The graphs of an export by their paths in its directory."""
    model = assemble(spec, PRECISIONS[options.precision].dtype_on(TARGETS[options.target]))
    job = _Job(spec, model, None, options, lambda stage: None)
    return {job.layout.graph_path(task.name): task for task in job._tasks(model, spec)}


def data_places(
    spec: Model,
    options: Options,
    quantized: Sequence[QuantizedRecord] = (),
    mixed: MixedRecord | None = None,
) -> tuple[str, dict[str, data_file.Region]]:
    """The path of an export's data file in its directory, and where in it each weight lies.

    ``quantized`` and ``mixed`` are what the export recorded of weights in blocks of their own.
    """
    model = assemble(spec, PRECISIONS[options.precision].dtype_on(TARGETS[options.target]))
    job = _Job(spec, model, None, options, lambda stage: None, tuple(quantized), recorded_blocks(mixed))
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
    check_logits(spec, options.logits)
    check_cache(spec, LAYOUTS[options.layout].target(deployment.target), options.cache_length)
    size = weight_bytes(model)
    source = (
        None if options.weights == "none" else open_weights(options.weights, model, spec, seed=options.seed)
    )
    if options.via == "torch":
        check_memory("--via torch", size * (1 + (COPIES if options.verify else 1)), "export with --via fx")
    check_destination(destination, 0 if source is None else precision.least_bytes(_values(model)))
    return source


def check_logits(spec: Model, logits: str) -> None:
    """Raise :class:`specs.errors.UserError` where the last token's scores are wanted of a model that has none."""
    decodes = spec.architecture != "encoder"
    if logits == "all" or (decodes and isinstance(spec.head, VocabularyHead)):
        return
    raise UserError(
        f"--logits last needs a decoder whose head scores the vocabulary for each token\n"
        f"  value: {spec.architecture}, head {spec.head.kind}\n"
        f"  leave it out" + (", or set head.kind=language_modeling" if decodes else "")
    )


def check_rounding(spec: Model, options: Options, claim: Claim | None) -> None:
    """Raise :class:`specs.errors.UserError` where rounding by GPTQ is asked for and cannot be."""
    if options.rounding != "gptq":
        return
    if spec.architecture == "encoder-decoder":
        raise UserError(
            f"--rounding gptq is for encoders and decoders, and {spec.name} is an encoder-decoder\n"
            "  give --rounding nearest"
        )
    if claim is not None and claim.unjudged:
        raise UserError(
            f"--rounding gptq needs inputs that the model is made for: {claim.unjudged}\n"
            "  give --calibrate, or --rounding nearest"
        )


def check_measurable(options: Options, claim: Claim | None) -> None:
    """Raise :class:`specs.errors.UserError` where a budget asks for measuring and there are no inputs."""
    if options.budget is not None and claim is not None and claim.unjudged:
        raise UserError(
            f"--budget needs inputs that the model is made for\n  value: {claim.unjudged}\n"
            "  Pass --calibrate, or leave --budget out."
        )


def _values(model: ZooModel) -> int:
    """The number of values of all weights."""
    return sum(tensor.numel() for _, tensor in weight_tensors(model))


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
    known: tuple[QuantizedRecord, ...] = ()
    raised: Mapping[str, Blocks | None] = field(default_factory=dict)
    mixed: MixedRecord | None = None

    @property
    def target(self) -> Target:
        return self.layout.target(TARGETS[self.options.target])

    @property
    def layout(self) -> Layout:
        return LAYOUTS[self.options.layout].of_precision(self.options.precision)

    @property
    def precision(self) -> Precision:
        return PRECISIONS[self.options.precision]

    def via_fx(self, destination: Path) -> Export:
        claim = self._claim()
        check_rounding(self.spec, self.options, claim)
        check_measurable(self.options, claim)
        self.progress(Stage("trace"))
        graphs = self._graphs(self.model, self.spec)
        if self._budget is not None:
            check_smallest(self.model, self._budget, graphs)
        if self.source is not None:
            check_destination(destination, data_file.total_bytes(_regions(graphs)))
        subject = (
            choose_subject(self.spec, self.model, self._held_bytes, self.source)
            if self.options.verify
            else None
        )
        with (
            replacing(destination) as directory,
            self._calibrated(directory, graphs, subject, claim) as changed,
        ):
            job, subject, claim, calibrated_on = changed
            if job._budget is not None and claim is not None:
                job, graphs, claim = job._planned(claim)
                calibrated_on = claim.inputs
            return job._write(destination, directory, graphs, subject, claim, calibrated_on)

    @contextmanager
    def _calibrated(
        self, directory: Path, graphs: list[Graph], subject: Subject | None, claim: Claim | None
    ) -> Iterator[tuple[_Job, Subject | None, Claim | None, Representative | None]]:
        """The job and its subject with weights that are rounded for representative inputs, and these; or as they are."""
        if claim is None or claim.unjudged or not self.options.calibrates or self.source is None:
            yield self, subject, claim, None
            return
        if claim.inputs is None:
            if subject is None or subject.is_twin:
                yield self, subject, claim, None
                return
            claim = claim.written_by(self._reference(subject).model, self.progress)
        inputs, regions = claim.inputs, _regions(graphs)
        assert inputs is not None
        roundings = roundings_of(regions, self.source)
        if not inputs.calibration or not roundings or self.spec.architecture == "encoder-decoder":
            yield self, subject, claim, None
            return
        with TemporaryDirectory(dir=directory.parent, prefix=f".{directory.name}.codes-") as place:
            source = rounded_for(
                self.spec, self.source, roundings, inputs.calibration, Path(place), self.progress
            )
            if subject is not None and not subject.is_twin:
                subject = replace(subject, source=source)
            yield replace(self, source=source, known=self._quantized), subject, claim, inputs

    def _planned(self, claim: Claim) -> tuple[_Job, list[Graph], Claim]:
        """The job with bits for each group of matrices, its graphs, and the inputs on which groups were measured."""
        source, budget = self.source, self._budget
        assert source is not None
        assert budget is not None
        check_memory("--budget measures the model, which", 8 * _values(self.model), "leave --budget out")
        subject = Subject(self.spec, source, is_twin=False, description="the model itself")
        model = self._reference(subject).model
        claim = claim.written_by(model, self.progress)
        assert claim.inputs is not None
        cases = list(cases_of(self.spec, claim.inputs.calibration))
        if not cases:
            raise UserError(
                f"--budget needs inputs to measure on, apart from those that are judged\n  value: "
                f"{claim.inputs.description}\n  Pass --calibrate with more."
            )
        dtype = self.precision.dtype_on(self.target)
        plan = planned(
            self.model,
            budget,
            lambda own: replace(self, raised=own)._graphs(self.model, self.spec),
            carried_blocks(self._quantized),
            self.options.block_size,
            measured(self.spec, model, source, cases, dtype, self.progress),
        )
        if isinstance(source, CalibratedWeights):
            source.forget(plan.own)
        job = replace(self, raised=plan.own, mixed=plan.record)
        return job, job._graphs(self.model, self.spec), claim

    @property
    def _budget(self) -> SizeBudget | None:
        return None if self.options.budget is None else SizeBudget.parse(self.options.budget)

    def _write(
        self,
        destination: Path,
        directory: Path,
        graphs: list[Graph],
        subject: Subject | None,
        claim: Claim | None,
        calibrated_on: Representative | None,
    ) -> Export:
        with followed(directory / self._data_paths(graphs)[0], _places(_regions(graphs))) as (
            following,
            digests,
        ):
            files = self._messages(graphs)
            unfused = {self.layout.graph_path(graph.name): graph.unfused for graph in graphs}
            write_graphs(directory, files, self._metadata)

            def finish(verification: Verification | None, judged: Judged = None) -> Export:
                self.progress(Stage("digests"))
                known = (
                    {} if self.source is None else dict.fromkeys(self._data_paths(graphs), digests.result())
                )
                written = self._finish(
                    destination, directory, files, known, verification, unfused, judged, calibrated_on
                )
                return replace(written, unjudged="" if claim is None else claim.unjudged)

            if subject is None:
                self._write_data(directory, graphs, self.source, following.written)
                return finish(None)
            reference = self._reference(subject)
            with ThreadPoolExecutor(1) as writer:

                @functools.cache
                def begin() -> Callable[[], None]:
                    if subject.is_twin:
                        return _nothing
                    return writer.submit(
                        self._write_held, directory, graphs, subject, reference, following.written
                    ).result

                if (
                    not self.precision.rounds
                ):  # writing leaves the interpreter free: the wiring is shown meanwhile
                    begin()
                wiring = self._wiring_verified(directory, graphs)
                if subject.is_twin:
                    self._write_data(directory, graphs, self.source, following.written)
                with self._files(subject, reference, graphs, directory) as (place, theirs):
                    verification = self._verified(place, subject, reference, theirs, begin, main_only=True)
            reference.drop()
            if claim is not None and subject.is_twin:
                claim = replace(claim, unjudged="there is too little memory to run the model itself")
            judged = None
            if claim is not None and not claim.unjudged:
                judged = self._judged(claim, directory, self._reference(subject), graphs)
            return finish(verification.followed_by(wiring), judged)

    def _claim(self) -> Claim | None:
        """What weights are rounded for, and what that is judged on, where it is."""
        if not (self.options.judges or self.options.calibrates or self.options.budget):
            return None
        self.progress(Stage("read representative inputs"))
        static = self.target.static_cache and self.spec.architecture != "encoder"
        longest = cache_length(self.spec, self.options.cache_length) if static else None
        return Claim.prepare(
            self.spec, tokenizer_origin(self.options.weights), self.options.calibrate, longest
        )

    def _judged(self, claim: Claim, directory: Path, reference: Reference, graphs: list[Graph]) -> Judged:
        path, regions = directory / self._data_paths(graphs)[0], _regions(graphs)
        tasks = self._tasks(self._assembled(self.spec), self.spec)
        return claim.hold(
            reference.model,
            {directory / self.layout.graph_path(task.name): task for task in tasks},
            self.target,
            self.precision,
            Limits(self.options.max_kl, self.options.min_cosine),
            lambda model: stored_weights(model, path, regions),
            self.progress,
        )

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
            write_graphs(directory, files, self._metadata)
            digests = {}
            for name, places in external_places(files).items():
                with followed(directory / name, places) as (following, found):
                    following.written(places.values())
                    digests[name] = found.result()
            verification = None
            if self.options.verify:
                verification = self._verified(directory, subject, reference, [])
            return self._finish(destination, directory, files, digests, verification)

    def _tasks(self, model: ZooModel, spec: Model) -> list[Task]:
        last_only = self.options.logits == "last"
        if not self.target.static_cache or spec.architecture == "encoder":
            return self.layout.tasks(model, spec, last_only)
        return tasks_with_static_cache(model, spec, cache_length(spec, self.options.cache_length), last_only)

    def _held_bytes(self, model: ZooModel, spec: Model) -> int:
        """The size of a model in float32, in which it is compared: of its weights, and of caches that do not grow, in the
        largest case."""
        task = self._tasks(model, spec)[-1]
        caches = [given.dims[1:] for given in task.inputs if task.places in given.dims[2:3]]
        places = sum(math.prod(dim for dim in dims if isinstance(dim, int)) for dims in caches)
        return 4 * (_values(model) + ROWS * places)

    def _graphs(self, model: ZooModel, spec: Model) -> list[Graph]:
        context = spec.context_length_of(spec.last_stack)
        return [
            trace_and_lower(model, task, self.target, context, self._quantization(task, spec))
            for task in self._tasks(model, spec)
        ]

    def _quantization(self, task: Task, spec: Model) -> Quantization | None:
        options = self.options
        decodes = spec.architecture != "encoder"
        return quantization_of(
            self.precision,
            self.target,
            decodes=decodes,
            graph_decodes=decodes and task.name != ENCODER,
            blocks=Blocks(4, options.block_size, not options.asymmetric),
            table_bits=4 if options.head_precision == "int4" else 8,
            own={**carried_blocks(self._quantized), **self.raised},
        )

    @functools.cached_property
    def _quantized(self) -> tuple[QuantizedRecord, ...]:
        """The weights that the checkpoint stores in few bits, and whether the export carries them: known where the source
        has codes of another origin, or is not there."""
        if self.source is None or self.known:
            return self.known
        return quantized_weights(self.model, self.source, self.target, self.precision)

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

    def _data_paths(self, graphs: list[Graph]) -> list[str]:
        """The names of the data file in the directory: several where each graph has to have one of its own name."""
        return list(dict.fromkeys(self.layout.data_path(graph.name) for graph in graphs))

    def _write_held(
        self,
        directory: Path,
        graphs: list[Graph],
        subject: Subject,
        reference: Reference,
        told: Callable[[Iterable[Place]], None] = lambda places: None,
    ) -> None:
        """As ``_write_data``, from the weights that a model holds already."""
        self._write_data(directory, graphs, HeldWeights(reference.model, subject.source), told)

    def _write_data(
        self,
        directory: Path,
        graphs: list[Graph],
        source: WeightSource | None,
        told: Callable[[Iterable[Place]], None],
    ) -> None:
        """Write the data file of the graphs, or none where there are no weights; ``told`` takes the places written."""
        if source is None:
            return
        regions = _regions(graphs)
        done, size = 0, sum(region.length for region in regions.values())

        def advance(written: Sequence[data_file.Region]) -> None:
            nonlocal done
            done += sum(region.length for region in written)
            told((region.offset, region.length) for region in written)
            self.progress(Stage("write weights", done, size))

        first, *others = (directory / name for name in self._data_paths(graphs))
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

        def take(model: ZooModel) -> dict[str, StoredWeight]:
            path = place / self.layout.data_path(graphs[0].name)
            return take_stored(model, path, _regions(graphs), subject.source)

        given = self._tasks(self._assembled(subject.spec), subject.spec)
        written = begin()  # assembling in another dtype sets that of all threads: it is over
        return verify(
            Proof(
                {place / self.layout.graph_path(task.name): task for task in given},
                {graph.name: unrounded_values(graph) for graph in graphs},
                reference,
                self.target,
                self.precision,
                subject.description,
                tell,
                written,
                take if self.precision.rounds else None,
                graphs[-1].padding if graphs else "either",
                main_only,
                weight_limits(self._quantized, subject.source)
                | dict.fromkeys(calibrated(subject.source), 0.0)
                | raised_limits(self.raised),
            )
        )

    @property
    def _metadata(self) -> dict[str, str]:
        weights = f"random, seed {self.options.seed}" if self._weights == "random" else self._weights
        return metadata_of(self.spec, self.target, self.options.precision, weights)

    @property
    def _weights(self) -> Literal["none", "random", "checkpoint"]:
        if self.source is None:
            return "none"
        return "random" if self.options.weights == "random" else "checkpoint"

    def _finish(
        self,
        destination: Path,
        directory: Path,
        files: Mapping[str, onnx.ModelProto],
        data: Mapping[str, DataDigests],
        verification: Verification | None,
        unfused: Mapping[str, Sequence[str]] = {},
        judged: Judged = None,
        calibrated_on: Representative | None = None,
    ) -> Export:
        """Write what a client reads beside the graphs and their data, the spec, and the records of all."""
        checked = {name: check_graph(name, graph) for name, graph in files.items()}
        tasks = self._tasks(self.model, self.spec)
        longest = {self.layout.graph_path(task.name): longest_sequence(task, self.spec) for task in tasks}
        cache = cache_record([*files.values()][-1])
        quality, inputs = judged or (None, None)
        self._write_settings(directory, shared=cache is not None and cache.kind == "shared")
        (directory / "spec.yaml").write_text(dump(resolved(self.spec)), "utf-8")
        manifest = Manifest(
            format=FORMAT,
            zoo=version("zoo"),
            torch=version("torch"),
            onnx=version("onnx"),
            target=self.target.name,
            providers=self.target.providers,
            precision=self.options.precision,
            layout=self.layout.name,
            options=ShapingRecord(**{name: getattr(self.options, name) for name in SHAPING}),
            weights=self._weights,
            seed=self.options.seed if self._weights == "random" else None,
            cache=cache,
            graphs={
                name: graph_record(graph, checked[name], longest[name], unfused.get(name, ()))
                for name, graph in files.items()
            },
            quantized=self._quantized,
            mixed=self.mixed,
            files=file_records(directory, {name: digests.file for name, digests in data.items()}),
            tensors={name: digests.tensors for name, digests in data.items()},
            calibrated_on=_inputs_record(calibrated_on),
            judged_on=_inputs_record(inputs),
        )
        weights_from = "none: the graph alone" if self.source is None else self.source.description
        build = write_records(directory, manifest, weights_from, verification, quality)
        return Export(destination, manifest, build, verification, quality)

    def _write_settings(self, directory: Path, *, shared: bool) -> None:
        deployment = Deployment(self.model, self.spec, self.target, self.precision, self.options.weights)
        carry_files(deployment.origin, directory)
        for name, data in self.layout.settings(deployment, shared).items():
            (directory / name).parent.mkdir(exist_ok=True)
            (directory / name).write_text(json.dumps(data, indent=2) + "\n", encoding="utf-8")


def _inputs_record(inputs: Representative | None) -> InputsRecord | None:
    return None if inputs is None else InputsRecord(description=inputs.description, sha256=inputs.sha256)


def _fused(graphs: list[Graph]) -> set[tuple[str, frozenset[str], tuple[bool, ...]]]:
    """The operations that not every target has, of all graphs: their attributes, and which of their inputs are given.

    Some are given more where heads are wide enough: GroupQueryAttention rotates, or is given what is rotated.
    """
    return {
        (node.op, frozenset(node.attributes), tuple(value is not None for value in node.inputs))
        for graph in graphs
        for node in graph.nodes
        if node.op in OPERATIONS
    }


def _places(regions: Mapping[str, data_file.Region]) -> dict[str, Place]:
    return {name: (region.offset, region.length) for name, region in regions.items()}


def _regions(graphs: list[Graph]) -> dict[str, data_file.Region]:
    return data_file.lay_out(parameter for graph in graphs for parameter in graph.parameters.values())
