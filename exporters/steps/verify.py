"""Verification of the files of an export, and judgement of its rounding."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory

from exporters.data.mixed_bits import raised_limits
from exporters.data.prequantized import weight_limits
from exporters.data.stored_weights import StoredWeight, stored_weights, take_stored
from exporters.data.weight_files import Told, write_weights
from exporters.graph.quantization.cache_scales import cache_of
from exporters.graph.trace import write_graphs
from exporters.graph.values import Graph
from exporters.quality.claim import QualityInputs, UserLimits
from exporters.quality.parts import Representative
from exporters.quality.quality import Quality
from exporters.rounding.calibration import calibrated
from exporters.rounding.quantized_cache.calibrate import calibrate_caches, random_case
from exporters.steps.plan import ExportPlan
from exporters.steps.weight_preparation import Contents
from exporters.target.providers import on_provider
from exporters.target.targets import OPERATIONS, Target
from exporters.verification.compare import verify
from exporters.verification.engines.prove import compile_files
from exporters.verification.engines.table import engine_named
from exporters.verification.exact.graph import unrounded_values
from exporters.verification.probes import write_probe
from exporters.verification.reference import Reference, reference_of
from exporters.verification.request import VerificationRequest
from exporters.verification.result import Verification, VerificationError
from exporters.verification.verified_model import VerifiedModel, wiring_subject
from specs.model.model import Model
from zoo.builder import ZooModel
from zoo.core.progress import Progress, Stage
from zoo.weights.held import HeldWeights


@dataclass(frozen=True)
class Proven:
    """The result: the verification and the quality, each None where not asked for.

    ``unjudged`` is the reason why ``quality`` is missing where rounding could have been judged.
    """

    verification: Verification | None = None
    quality: Quality | None = None
    judged_on: Representative | None = None
    unjudged: str = ""


def write_and_prove(contents: Contents, directory: Path, told: Told, progress: Progress) -> Proven:
    """Write the weights of a directory that has its graphs, and verify what the options ask for.

    Raises :class:`exporters.verification.result.VerificationError` and :class:`exporters.quality.quality.QualityError`.
    """
    plan, source, subject, claim = contents.plan, contents.source, contents.subject, contents.claim
    paths = [directory / name for name in plan.data_paths]
    unjudged = "" if claim is None else claim.unjudged
    if subject is not None and not subject.is_reduced:
        reference = contents.reference or reference_of(subject, progress)

        def write() -> None:
            write_weights(paths, plan.regions, HeldWeights(reference.model, subject.source), progress, told)

        verification = _main_verified(plan, directory, subject, reference, write, progress)
        reference.drop()
        found = Proven(verification, unjudged=unjudged)
        if claim is None or unjudged:
            return found
        return _judged(found, plan, claim, directory, reference_of(subject, progress), progress)
    if source is not None:
        write_weights(paths, plan.regions, source, progress, told)
    if subject is None:
        return Proven(unjudged=unjudged)
    wiring, theirs = _wiring_verified(plan, directory, progress), plan.of(subject.spec)
    with reduced_model_files(theirs, subject, directory, progress) as (place, reference):
        verification = verified(theirs, place, subject, reference, progress, main_only=True)
        verification = verification.followed_by(wiring)
        compiled = compile_files(proof_of(plan, directory, subject, reference, progress, compilers=True))
    verification = replace(verification, engines=(*verification.engines, *compiled))
    if not verification.passed:
        raise VerificationError(verification)
    if claim is not None:
        unjudged = unjudged or "the model itself does not fit in memory"
    return Proven(verification, unjudged=unjudged)


def _main_verified(
    plan: ExportPlan,
    directory: Path,
    subject: VerifiedModel,
    reference: Reference,
    write: Callable[[], None],
    progress: Progress,
) -> Verification:
    """The verification of the model itself, whose weights are written at the same time, and of a reduced model."""
    with ThreadPoolExecutor(1) as writer:
        if plan.precision.rounds:  # rounding keeps the processor busy
            wiring = _wiring_verified(plan, directory, progress)
            writing = writer.submit(write)
        else:  # copying does not
            writing = writer.submit(write)
            wiring = _wiring_verified(plan, directory, progress)
        main = verified(
            plan, directory, subject, reference, progress, writing.result, main_only=True, record=True
        )
        return main.followed_by(wiring)


def _judged(
    found: Proven,
    plan: ExportPlan,
    claim: QualityInputs,
    directory: Path,
    reference: Reference,
    progress: Progress,
) -> Proven:
    """The result with the quality. Raises :class:`exporters.quality.quality.QualityError`."""
    quality, inputs = claim.hold(
        reference.model,
        {directory / name: task for name, task in plan.graph_paths.items()},
        plan.target,
        plan.precision,
        UserLimits(plan.options.max_kl, plan.options.min_cosine),
        lambda model: stored_weights(model, directory / plan.data_paths[0], plan.regions),
        progress,
        plan.options.cache_precision,
    )
    return replace(found, quality=quality, judged_on=inputs)


def _wiring_verified(plan: ExportPlan, directory: Path, progress: Progress) -> Verification:
    """The verification of a reduced model in all cases, with temporary files next to ``directory``."""
    wanted, tried = _fused(plan.graphs), list[ExportPlan]()

    def alike(spec: Model) -> bool:
        """Whether a model has the same fused operations: a narrow one may not fit them."""
        tried.append(plan.of(spec))
        return _fused(tried[-1].graphs) == wanted

    subject = wiring_subject(plan.spec, alike)
    theirs = next(each for each in reversed(tried) if each.spec is subject.spec)
    with reduced_model_files(theirs, subject, directory, progress) as (place, reference):
        return verified(theirs, place, subject, reference, progress)


@contextmanager
def reduced_model_files(
    plan: ExportPlan, subject: VerifiedModel, directory: Path, progress: Progress
) -> Iterator[tuple[Path, Reference]]:
    """Yield a directory with the files of a reduced model, and the reduced model."""
    reference = reference_of(subject, progress)
    with TemporaryDirectory(dir=directory.parent, prefix=f".{directory.name}.reduced-") as name:
        place = Path(name)
        held = HeldWeights(reference.model, subject.source)
        if plan.options.cache is not None:
            calibrate_caches(plan.graphs, plan.spec, subject.source, random_case(plan.spec), progress)
        write_weights([place / path for path in plan.data_paths], plan.regions, held, progress)
        write_graphs(place, plan.messages(), {})
        yield place, reference


def verified(
    plan: ExportPlan,
    place: Path,
    subject: VerifiedModel,
    reference: Reference,
    progress: Progress,
    written: Callable[[], None] = lambda: None,
    *,
    main_only: bool = False,
    record: bool = False,
) -> Verification:
    """The verification of the files of a plan.  Raises :class:`exporters.verification.result.VerificationError`."""
    # Compilers take the recorded files, those of the model itself: narrower ones may not fit their kernels.
    return verify(
        proof_of(
            plan, place, subject, reference, progress, written,
            main_only=main_only, record=record, compilers=record,
        )
    )  # fmt: skip


def proof_of(
    plan: ExportPlan,
    place: Path,
    subject: VerifiedModel,
    reference: Reference,
    progress: Progress,
    written: Callable[[], None] = lambda: None,
    *,
    main_only: bool = False,
    record: bool = False,
    compilers: bool = False,
) -> VerificationRequest:
    """What is verified of the files of a plan in ``place``, whose weights are complete when ``written`` returns.

    With ``record``, one case is recorded there for :mod:`zoo.record.certificate`. Engines that only compile take part with
    ``compilers``.
    """

    def tell(case: str) -> None:
        progress(Stage(f"verify: {case}"))

    def take(model: ZooModel) -> dict[str, StoredWeight]:
        return take_stored(model, place / plan.data_paths[0], plan.regions, subject.source)

    graphs = {task.name: name for name, task in plan.graph_paths.items()}
    return VerificationRequest(
        {place / name: task for name, task in plan.graph_paths.items()},
        {graph.name: unrounded_values(graph) for graph in plan.graphs},
        reference,
        _verified_on(plan),
        plan.precision,
        subject.description,
        tell,
        written,
        take if plan.precision.rounds else None,
        plan.graphs[-1].padding if plan.graphs else "either",
        main_only,
        cache_of(plan.graphs),
        weight_limits(plan.quantized, subject.source)
        | dict.fromkeys(calibrated(subject.source), 0.0)
        | raised_limits(plan.raised),
        (lambda probe: write_probe(place, graphs, probe)) if record else None,
        [each for each in map(engine_named, plan.options.engines) if compilers or each.shows == "computes"],
    )


def _verified_on(plan: ExportPlan) -> Target:
    """The target with the provider that was asked for."""
    if plan.options.provider is None:
        return plan.target
    return replace(plan.target, providers=tuple(on_provider(plan.options.provider)))


def _fused(graphs: list[Graph]) -> set[tuple[str, frozenset[str], tuple[bool, ...]]]:
    """The target-specific operations of all graphs: their attributes, and which of their inputs are given.

    Inputs can depend on head widths: GroupQueryAttention rotates only wide enough heads.
    """
    return {
        (node.op, frozenset(node.attributes), tuple(value is not None for value in node.inputs))
        for graph in graphs
        for node in graph.nodes
        if node.op in OPERATIONS
    }
