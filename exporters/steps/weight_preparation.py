"""The contents of an export: weights rounded for representative inputs, with the bits that a budget gives them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory

from exporters.data.prequantized import carried_blocks
from exporters.quality.claim import QualityInputs
from exporters.quality.judge import cases_of
from exporters.quality.parts import Representative
from exporters.rounding.bit_costs import measured
from exporters.rounding.bit_plan import check_smallest, planned
from exporters.rounding.calibrated_weights import CalibratedWeights
from exporters.rounding.calibration import rounded_for, roundings_of, unwritten
from exporters.rounding.quantized_cache.calibrate import calibrate_caches, calibration_case, random_case
from exporters.rounding.quantized_cache.check import check_cache_fused
from exporters.rounding.size_budget import SizeBudget
from exporters.steps.plan import ExportPlan
from exporters.steps.preconditions import check_measurable, check_rounding
from exporters.steps.static_activations import may_be_static, with_activations
from exporters.target.static_cache import cache_length
from exporters.verification.reference import Reference, reference_of
from exporters.verification.verified_model import VerifiedModel, check_memory, choose_subject
from specs.base.errors import UserError, option_name
from zoo.checkpoints.carried import tokenizer_origin
from zoo.core.progress import Progress, Stage
from zoo.core.tensors import weight_count
from zoo.record.records import MixedRecord
from zoo.weights.source import WeightSource


@dataclass(frozen=True)
class Contents:
    """A plan, and the weights that fill its graphs.

    ``subject`` is the model that is verified, ``claim`` the judgement of rounding, None each where not wanted;
    ``calibrated_on`` are the inputs for which weights are rounded, ``mixed`` the bits that a budget gives to each
    group, and ``reference`` the model itself where one of these steps needed it.
    """

    plan: ExportPlan
    source: WeightSource | None
    subject: VerifiedModel | None
    claim: QualityInputs | None
    calibrated_on: Representative | None = None
    mixed: MixedRecord | None = None
    reference: Reference | None = None


def traced(plan: ExportPlan, source: WeightSource | None, progress: Progress) -> Contents:
    """The graphs of a plan, with unprepared weights. Raises :class:`specs.base.errors.UserError`."""
    claim = _claim(plan, progress)
    plan = with_activations(plan, claim)
    check_rounding(plan.options, claim)
    check_measurable(plan.options, claim)
    progress(Stage("trace"))
    graphs = plan.graphs
    check_cache_fused(plan.spec, graphs, plan.options.cache)
    if plan.options.budget is not None:
        check_smallest(plan.model, SizeBudget.parse(plan.options.budget), graphs)
    subject = None
    if plan.options.verify:
        subject = choose_subject(plan.spec, lambda spec: plan.of(spec).held_bytes, source)
    return Contents(plan, source, subject, claim)


def _claim(plan: ExportPlan, progress: Progress) -> QualityInputs | None:
    """The inputs for rounding, and those on which it is judged; None where neither is wanted."""
    options, spec = plan.options, plan.spec
    calibrates = options.calibrates or options.calibrates_cache or may_be_static(plan)
    if not (options.judges or calibrates or options.budget):
        return None
    progress(Stage("read representative inputs"))
    static = plan.target.static_cache and spec.decodes
    longest = cache_length(spec, options.cache_length) if static else None
    return QualityInputs.prepare(spec, tokenizer_origin(options.weights), options.calibrate, longest)


@contextmanager
def prepared(contents: Contents, directory: Path, progress: Progress) -> Iterator[Contents]:
    """The contents with weights rounded for representative inputs, mixed bits and cache scales, as the options ask.

    Codes are kept in a temporary directory next to ``directory`` within the block.
    """
    with ExitStack() as stack:
        if contents.plan.options.calibrates:
            codes = TemporaryDirectory(dir=directory.parent, prefix=f".{directory.name}.codes-")
            contents = _calibrated(contents, Path(stack.enter_context(codes)), progress)
        budget = contents.plan.options.budget
        if budget is not None and contents.claim is not None:
            contents = _mixed(contents, SizeBudget.parse(budget), contents.claim, progress)
        yield _with_cache_scales(contents, progress)


def _with_cache_scales(contents: Contents, progress: Progress) -> Contents:
    plan, source, subject, claim = contents.plan, contents.source, contents.subject, contents.claim
    if plan.options.cache is None or source is None:
        return contents
    if claim is None:
        case = random_case(plan.spec)
    else:
        model = None
        if claim.inputs is None and subject is not None and not subject.is_reduced:
            model = (contents.reference or reference_of(subject, progress)).model
        claim, case = calibration_case(plan.spec, claim, model, progress)
        contents = replace(contents, claim=claim, calibrated_on=claim.inputs)
    calibrate_caches(plan.graphs, plan.spec, source, case, progress)
    return contents


def _calibrated(contents: Contents, codes: Path, progress: Progress) -> Contents:
    plan, source, subject, claim = contents.plan, contents.source, contents.subject, contents.claim
    if claim is None or claim.unjudged or source is None:
        return contents
    if claim.awaits_model:
        whole = subject or choose_subject(plan.spec, lambda spec: plan.of(spec).held_bytes, source)
        if whole.is_reduced:
            return replace(contents, claim=unwritten(claim, plan.options.rounding))
        reference = reference_of(whole, progress)
        claim = claim.written_by(reference.model, progress)
        contents = replace(contents, claim=claim, reference=reference)
    inputs = claim.inputs
    assert inputs is not None
    roundings = roundings_of(plan.regions, source)
    if not inputs.calibration or not roundings:
        return contents
    rounded = rounded_for(plan.spec, source, roundings, inputs.calibration, codes, progress)
    if subject is not None and not subject.is_reduced:
        subject = replace(subject, source=rounded)
    return replace(contents, source=rounded, subject=subject, calibrated_on=inputs)


def _mixed(contents: Contents, budget: SizeBudget, claim: QualityInputs, progress: Progress) -> Contents:
    """The contents with bits for each group of matrices, by the cost of low ones."""
    plan, source = contents.plan, contents.source
    assert source is not None
    check_memory(
        f"{option_name('budget')} measures the model, which",
        8 * weight_count(plan.model),
        f"leave {option_name('budget')} out",
    )
    subject = VerifiedModel(plan.spec, source, is_reduced=False, description="the model itself")
    reference = contents.reference or reference_of(subject, progress)
    model = reference.model
    claim = claim.written_by(model, progress)
    assert claim.inputs is not None
    cases = list(cases_of(plan.spec, claim.inputs.calibration))
    if not cases:
        raise UserError(
            f"{option_name('budget')} needs calibration inputs apart from the judged ones\n  value: "
            f"{claim.inputs.description}\n  Pass {option_name('calibrate')} with more."
        )
    dtype = plan.precision.dtype_on(plan.target)
    found = planned(
        plan.model,
        budget,
        lambda own: replace(plan, raised=own).graphs,
        carried_blocks(plan.quantized),
        measured(plan.spec, model, source, cases, dtype, progress),
        plan.target,
    )
    if isinstance(source, CalibratedWeights):
        source.forget(found.own)
    return replace(
        contents,
        plan=replace(plan, raised=found.own),
        claim=claim,
        calibrated_on=claim.inputs,
        mixed=found.record,
        reference=reference,
    )
