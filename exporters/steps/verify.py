"""The fifth stage of an export: its weights written, its files verified, and its rounding judged."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from exporters.data.data_file import OnWritten, write_weights
from exporters.data.mixed_bits import more_bits_limits
from exporters.data.prequantized import weight_limits
from exporters.data.stored_weights import StoredWeight, take_stored
from exporters.graph.quantization.cache_scales import Scales, cache_of
from exporters.graph.trace import write_graphs
from exporters.graph.values import Graph
from exporters.steps.graphs import Graphs
from exporters.steps.plan import Plan
from exporters.steps.weights import Weights
from exporters.target.providers import on_provider
from exporters.target.targets import OPERATIONS, Target
from exporters.verification.compare import verify
from exporters.verification.engines.table import engine_named
from exporters.verification.exact.graph import unrounded_values
from exporters.verification.probes import write_probe
from exporters.verification.reference import Reference, reference_of
from exporters.verification.request import VerificationRequest
from exporters.verification.result import Verification, VerificationError
from exporters.verification.verified_model import VerifiedModel, narrow_models, probing_model
from zoo.builder import ZooModel
from zoo.core.progress import Progress, Stage
from zoo.machine.memory import return_released
from zoo.weights.held import HeldWeights

if TYPE_CHECKING:
    from exporters.quality.parts import Representative
    from exporters.quality.quality import Quality
    from exporters.steps.adapters import VerifiedAdapter


@dataclass(frozen=True)
class Verified:
    """Written weights, with their verification and quality: None each where not asked for.

    ``unjudged`` is the reason why ``quality`` is missing where rounding could have been judged.
    """

    weights: Weights
    verification: Verification | None = None
    quality: Quality | None = None
    judged_on: Representative | None = None
    unjudged: str = ""
    adapters: Mapping[str, VerifiedAdapter] = field(default_factory=dict)


@dataclass(frozen=True)
class ModelFiles:
    """The files of some weights in a directory, and the reference that they are compared with."""

    weights: Weights
    directory: Path
    reference: Reference


def write_and_verify(
    weights: Weights, directory: Path, on_written: OnWritten, progress: Progress
) -> Verified:
    """Write the weights to a directory that has their graphs, and verify what the options ask for.

    Raises :class:`exporters.verification.result.VerificationError` and :class:`exporters.quality.quality.QualityError`.
    """
    plan, model, inputs = weights.plan, weights.verified_model, weights.quality_inputs
    paths = [directory / name for name in plan.data_paths]
    unjudged = "" if inputs is None else inputs.unjudged
    if model is not None and not model.is_reduced:
        files = ModelFiles(weights, directory, weights.reference or reference_of(model, progress))

        def write() -> None:
            held = HeldWeights(files.reference.model, model.source)
            write_weights(paths, weights.regions, held, progress, on_written)

        verification = _verify_main(files, write, progress)
        files.reference.drop()
        verified = Verified(weights, verification, unjudged=unjudged)
        if inputs is None or unjudged:
            return verified
        files = replace(files, reference=reference_of(model, progress))
        from exporters.steps.quality import held

        quality, judged_on = held(files, None, progress)
        return replace(verified, quality=quality, judged_on=judged_on)
    if weights.source is not None:
        write_weights(paths, weights.regions, weights.source, progress, on_written)
    if model is None:
        return Verified(weights, unjudged=unjudged)
    if inputs is not None:
        unjudged = unjudged or "the model itself does not fit in memory"
    return Verified(weights, _verify_reduced(weights, model, directory, progress), unjudged=unjudged)


def _verify_main(files: ModelFiles, write: Callable[[], None], progress: Progress) -> Verification:
    """The verification of the model itself, whose weights are written at the same time, and of a reduced model."""
    graphs, directory = files.weights.graphs, files.directory
    with ThreadPoolExecutor(1) as writer:
        if graphs.plan.precision.rounds:  # rounding keeps the processor busy
            wiring = _verify_wiring(graphs, directory, progress)
            writing = writer.submit(write)
        else:  # copying does not
            writing = writer.submit(write)
            wiring = _verify_wiring(graphs, directory, progress)
        return_released()  # by the reduced model
        main = verify(
            verification_request(files, progress, writing.result, main_only=True, record=True, compilers=True)
        )
        return main.followed_by(wiring)


def _verify_reduced(
    weights: Weights, model: VerifiedModel, directory: Path, progress: Progress
) -> Verification:
    """The verification of reduced models alone, and the compilation of the files themselves."""
    wiring = _verify_wiring(weights.graphs, directory, progress)
    reduced = Graphs.of(weights.plan.for_spec(model.spec))
    with reduced_model_files(reduced, model, directory, progress) as files:
        verification = verify(verification_request(files, progress, main_only=True)).followed_by(wiring)
        itself = ModelFiles(weights, directory, files.reference)
        from exporters.verification.engine_claim import compile_files

        compiled = compile_files(verification_request(itself, progress, compilers=True))
    verification = replace(verification, engines=(*verification.engines, *compiled))
    if not verification.passed:
        raise VerificationError(verification)
    return verification


def _verify_wiring(graphs: Graphs, directory: Path, progress: Progress) -> Verification:
    """The verification of a reduced model in all cases, with temporary files next to ``directory``."""
    reduced = _narrowest_alike(graphs)
    model = probing_model(reduced.plan.spec)
    with reduced_model_files(reduced, model, directory, progress) as files:
        return verify(verification_request(files, progress))


def _narrowest_alike(graphs: Graphs) -> Graphs:
    """The graphs of the narrowest reduced model with the same fused operations: a narrow one may not fit them.

    The widest reduced model if none has.
    """
    wanted = _fused(graphs.graphs)
    for spec in narrow_models(graphs.plan.spec):
        reduced = Graphs.of(graphs.plan.for_spec(spec))
        if _fused(reduced.graphs) == wanted:
            break
    return reduced


@contextmanager
def reduced_model_files(
    graphs: Graphs, model: VerifiedModel, directory: Path, progress: Progress
) -> Iterator[ModelFiles]:
    """Yield the files of a reduced model, in a temporary directory next to ``directory``."""
    plan, reference = graphs.plan, reference_of(model, progress)
    with TemporaryDirectory(dir=directory.parent, prefix=f".{directory.name}.reduced-") as name:
        weights = Weights(graphs, model.source, model, scales=_random_scales(plan, model, progress))
        held = HeldWeights(reference.model, model.source)
        write_weights([Path(name, path) for path in plan.data_paths], weights.regions, held, progress)
        write_graphs(Path(name), graphs.messages(), {})
        yield ModelFiles(weights, Path(name), reference)


def _random_scales(plan: Plan, model: VerifiedModel, progress: Progress) -> Scales:
    """The cache scales of a reduced model, for random inputs; empty for a float cache."""
    if plan.options.cache is None:
        return {}
    from exporters.rounding.quantized_cache.calibrate import calibrated_scales, random_case

    return calibrated_scales(plan.options.cache, plan.spec, model.source, random_case(plan.spec), progress)


def verification_request(
    files: ModelFiles,
    progress: Progress,
    written: Callable[[], None] = lambda: None,
    *,
    main_only: bool = False,
    record: bool = False,
    compilers: bool = False,
) -> VerificationRequest:
    """The request to verify some files, whose weights are complete when ``written`` returns.

    With ``record``, one case is recorded beside them for :mod:`zoo.record.certificate`. Engines that only compile take part
    with ``compilers``, for the files of the model itself: narrower ones may not fit their kernels.
    """
    weights, directory, plan = files.weights, files.directory, files.weights.plan
    graphs, model = weights.graphs.graphs, weights.verified_model
    assert model is not None

    def tell(case: str) -> None:
        progress(Stage(f"verify: {case}"))

    def take(module: ZooModel) -> dict[str, StoredWeight]:
        return take_stored(module, directory / plan.data_paths[0], weights.regions, model.source)

    names = {task.name: name for name, task in plan.graph_paths.items()}
    limits = weight_limits(plan.quantized, model.source) | dict.fromkeys(model.source.calibrated, 0.0)
    return VerificationRequest(
        graphs={directory / name: task for name, task in plan.graph_paths.items()},
        unrounded={graph.name: unrounded_values(graph) for graph in graphs},
        reference=files.reference,
        target=_verified_on(plan),
        precision=plan.precision,
        subject=model.description,
        progress=tell,
        written=written,
        take_stored=take if plan.precision.rounds else None,
        padding=graphs[-1].padding if graphs else "either",
        main_only=main_only,
        cache=cache_of(graphs, weights.scales),
        limits=limits | more_bits_limits(plan.more_bits),
        record=(lambda probe: write_probe(directory, names, probe)) if record else None,
        is_itself=not model.is_reduced,
        engines=[
            engine
            for engine in map(engine_named, plan.options.engines)
            if compilers or engine.shows == "computes"
        ],
        layer_outputs=plan.layer_outputs,
    )


def _verified_on(plan: Plan) -> Target:
    """The target with the provider that was asked for."""
    if plan.options.provider is None:
        return plan.target
    return replace(plan.target, providers=tuple(on_provider(plan.options.provider)))


def _fused(graphs: Sequence[Graph]) -> set[tuple[str, frozenset[str], tuple[bool, ...]]]:
    """The target-specific operations of all graphs: their attributes, and which of their inputs are given.

    Inputs can depend on head widths: GroupQueryAttention rotates only wide enough heads.
    """
    return {
        (node.op, frozenset(node.attributes), tuple(value is not None for value in node.inputs))
        for graph in graphs
        for outer in graph.nodes
        for node in outer.within
        if node.op in OPERATIONS
    }
