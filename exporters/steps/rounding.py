"""The weights of an export rounded for representative inputs, with the bits that a budget gives them, and cache scales."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

from exporters.data.prequantized import prequantized_blocks
from exporters.quality.judge import cases_of
from exporters.quality.quality_inputs import QualityInputs
from exporters.rounding.bit_costs import measured
from exporters.rounding.bit_plan import planned
from exporters.rounding.calibrated_weights import CalibratedWeights
from exporters.rounding.calibration import rounded_for, rounded_to_nearest, roundings_of, unwritten
from exporters.rounding.quantized_cache.calibrate import calibrated_scales, calibration_case, random_case
from exporters.rounding.size_budget import SizeBudget
from exporters.steps.graphs import Graphs
from exporters.steps.weights import Weights
from exporters.verification.reference import reference_of
from exporters.verification.verified_model import VerifiedModel, check_memory, choose_model
from specs.base.errors import UserError, option_name
from zoo.core.progress import Progress
from zoo.core.tensors import weight_count


@contextmanager
def rounded(weights: Weights, directory: Path, progress: Progress) -> Iterator[Weights]:
    """The weights rounded for representative inputs, with mixed bits and cache scales, as the options ask.

    Codes are kept in a temporary directory next to ``directory`` within the block.
    """
    options = weights.plan.options
    with ExitStack() as stack:
        if options.calibrates:
            codes = TemporaryDirectory(dir=directory.parent, prefix=f".{directory.name}.codes-")
            weights = _for_inputs(weights, Path(stack.enter_context(codes)), progress)
        if options.budget is not None and weights.quality_inputs is not None:
            budget = SizeBudget.parse(options.budget)
            weights = _with_mixed_bits(weights, budget, weights.quality_inputs, progress)
        yield _with_cache_scales(weights, progress)


def _for_inputs(weights: Weights, codes: Path, progress: Progress) -> Weights:
    plan, source, inputs = weights.plan, weights.source, weights.quality_inputs
    if inputs is None or source is None:
        return weights
    if inputs.awaits_model and not inputs.unjudged:
        model = _writer(weights)
        if model.is_reduced:
            inputs = unwritten(inputs, plan.options.rounding)
        else:
            weights = replace(weights, reference=reference_of(model, progress))
            assert weights.reference is not None
            inputs = inputs.written_by(weights.reference.model, progress)
        weights = replace(weights, quality_inputs=inputs)
    roundings = roundings_of(weights.graphs.regions, source)
    if not roundings:
        return weights
    examples = inputs.representative
    if examples is None or inputs.unjudged or not examples.calibration:
        return weights.with_source(rounded_to_nearest(plan.spec, source, roundings, codes, progress))
    rounded = rounded_for(plan.spec, source, roundings, examples.calibration, codes, progress)
    return replace(weights.with_source(rounded), calibrated_on=examples)


def _writer(weights: Weights) -> VerifiedModel:
    """The model that generates its own inputs; a reduced one where memory does not allow that."""
    plan = weights.plan
    return weights.verified_model or choose_model(
        plan.spec, lambda spec: plan.for_spec(spec).held_bytes, weights.source
    )


def _with_mixed_bits(
    weights: Weights, budget: SizeBudget, inputs: QualityInputs, progress: Progress
) -> Weights:
    """The weights with bits for each group of matrices, by the cost of low ones."""
    plan, source = weights.plan, weights.source
    assert source is not None
    check_memory(
        f"{option_name('budget')} measures the model, which",
        8 * weight_count(plan.model),
        f"leave {option_name('budget')} out",
    )
    whole = VerifiedModel(plan.spec, source, is_reduced=False, description="the model itself")
    reference = weights.reference or reference_of(whole, progress)
    model = reference.model
    inputs = inputs.written_by(model, progress)
    assert inputs.representative is not None
    cases = list(cases_of(plan.spec, inputs.representative.calibration))
    if not cases:
        raise UserError(
            f"{option_name('budget')} needs calibration inputs apart from the judged ones\n  value: "
            f"{inputs.representative.description}\n  Pass {option_name('calibrate')} with more."
        )
    dtype = plan.precision.dtype_on(plan.target)
    bits = planned(
        plan.model,
        budget,
        lambda more_bits: Graphs.of(replace(plan, more_bits=more_bits)).graphs,
        prequantized_blocks(plan.quantized),
        measured(plan.spec, model, source, cases, dtype, progress),
        plan.target,
    )
    if isinstance(source, CalibratedWeights):
        weights = weights.with_source(source.without(bits.more_bits))
    return replace(
        weights,
        graphs=Graphs.of(replace(plan, more_bits=bits.more_bits)),
        quality_inputs=inputs,
        calibrated_on=inputs.representative,
        mixed=bits.record,
        reference=reference,
    )


def _with_cache_scales(weights: Weights, progress: Progress) -> Weights:
    plan, source, inputs = weights.plan, weights.source, weights.quality_inputs
    if plan.options.cache is None or source is None:
        return weights
    if inputs is None:
        case = random_case(plan.spec)
    else:
        writer = None
        if inputs.representative is None and not (model := _writer(weights)).is_reduced:
            writer = (weights.reference or reference_of(model, progress)).model
        inputs, case = calibration_case(plan.spec, inputs, writer, progress)
        weights = replace(weights, quality_inputs=inputs, calibrated_on=inputs.representative)
    return replace(weights, scales=calibrated_scales(plan.options.cache, plan.spec, source, case, progress))
