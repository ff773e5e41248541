"""The fourth stage of an export: weights rounded for representative inputs, with the bits that a budget gives them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from tempfile import TemporaryDirectory

from exporters.data.data_file import Region
from exporters.data.prequantized import prequantized_blocks
from exporters.data.stored_scales import with_scales
from exporters.graph.quantization.cache_scales import Scales
from exporters.quality.judge import cases_of
from exporters.quality.parts import Representative
from exporters.quality.quality_inputs import QualityInputs
from exporters.rounding.bit_costs import measured
from exporters.rounding.bit_plan import check_smallest, planned
from exporters.rounding.calibrated_weights import CalibratedWeights
from exporters.rounding.calibration import rounded_for, rounded_to_nearest, roundings_of, unwritten
from exporters.rounding.quantized_cache.calibrate import calibrated_scales, calibration_case, random_case
from exporters.rounding.quantized_cache.check import check_cache_fused
from exporters.rounding.size_budget import SizeBudget
from exporters.steps.graphs import Graphs
from exporters.steps.plan import Plan
from exporters.steps.static_activations import may_be_static
from exporters.steps.window_cache import check_windows_fused
from exporters.target.static_cache import cache_length
from exporters.verification.reference import Reference, reference_of
from exporters.verification.verified_model import VerifiedModel, check_memory, choose_model
from specs.base.errors import UserError, option_name
from zoo.checkpoints.carried import tokenizer_origin
from zoo.core.progress import Progress, Stage
from zoo.core.tensors import weight_count
from zoo.record.records import MixedRecord
from zoo.weights.source import WeightSource


@dataclass(frozen=True)
class Weights:
    """The weights that fill some graphs: their ``source``, None for the graphs alone, and the ``scales`` of a quantized cache.

    ``verified_model`` is the model to verify, None for an export without verification; ``quality_inputs`` are the inputs to
    judge rounding on, None if it is not judged. ``calibrated_on`` are the inputs for which weights are rounded, ``mixed``
    records the bits that a budget gives to each group, and ``reference`` is the model itself, if a step needed it.
    """

    graphs: Graphs
    source: WeightSource | None
    verified_model: VerifiedModel | None = None
    quality_inputs: QualityInputs | None = None
    scales: Scales = field(default_factory=dict)
    calibrated_on: Representative | None = None
    mixed: MixedRecord | None = None
    reference: Reference | None = None

    @staticmethod
    def of(graphs: Graphs, source: WeightSource | None, quality_inputs: QualityInputs | None) -> Weights:
        """The weights as they are, before rounding, and the model to verify.

        Raises :class:`specs.base.errors.UserError` for attentions without a quantized cache, for a budget below the smallest
        file, and for too little memory.
        """
        plan = graphs.plan
        check_cache_fused(plan.spec, graphs.graphs, plan.options.cache)
        if plan.windows:
            check_windows_fused(plan.spec, graphs.graphs)
        if plan.options.budget is not None:
            check_smallest(plan.model, SizeBudget.parse(plan.options.budget), graphs.graphs)
        verified_model = None
        if plan.options.verify:
            verified_model = choose_model(plan.spec, lambda spec: plan.for_spec(spec).held_bytes, source)
        return Weights(graphs, source, verified_model, quality_inputs)

    @property
    def plan(self) -> Plan:
        """The plan of the graphs."""
        return self.graphs.plan

    @property
    def regions(self) -> Mapping[str, Region]:
        """The region of each weight in the data file, with the values of cache scales."""
        return with_scales(self.graphs.regions, self.scales) if self.scales else self.graphs.regions

    def with_source(self, source: WeightSource) -> Weights:
        """The same weights from another source, which the model itself is verified with, too."""
        model = self.verified_model
        if model is not None and not model.is_reduced:
            model = replace(model, source=source)
        return replace(self, source=source, verified_model=model)


def read_quality_inputs(plan: Plan, progress: Progress) -> QualityInputs | None:
    """The inputs for which weights are rounded and on which rounding is judged; None if the plan needs none."""
    options, spec = plan.options, plan.spec
    calibrates = options.calibrates or options.calibrates_cache or may_be_static(plan)
    if not (options.judges or calibrates or options.budget):
        return None
    progress(Stage("read representative inputs"))
    static = plan.target.static_cache and spec.decodes
    longest = cache_length(spec, options.cache_length) if static else None
    return QualityInputs.prepare(spec, tokenizer_origin(options.weights), options.calibrate, longest)


@contextmanager
def prepared(weights: Weights, directory: Path, progress: Progress) -> Iterator[Weights]:
    """The weights rounded for representative inputs, with mixed bits and cache scales, as the options ask.

    Codes are kept in a temporary directory next to ``directory`` within the block.
    """
    options = weights.plan.options
    with ExitStack() as stack:
        if options.calibrates:
            codes = TemporaryDirectory(dir=directory.parent, prefix=f".{directory.name}.codes-")
            weights = _rounded(weights, Path(stack.enter_context(codes)), progress)
        if options.budget is not None and weights.quality_inputs is not None:
            budget = SizeBudget.parse(options.budget)
            weights = _with_mixed_bits(weights, budget, weights.quality_inputs, progress)
        yield _with_cache_scales(weights, progress)


def _rounded(weights: Weights, codes: Path, progress: Progress) -> Weights:
    plan, source, inputs = weights.plan, weights.source, weights.quality_inputs
    if inputs is None or source is None:
        return weights
    if inputs.awaits_model and not inputs.unjudged:
        model = weights.verified_model or choose_model(
            plan.spec, lambda spec: plan.for_spec(spec).held_bytes, source
        )
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
    plan, source, inputs, model = weights.plan, weights.source, weights.quality_inputs, weights.verified_model
    if plan.options.cache is None or source is None:
        return weights
    if inputs is None:
        case = random_case(plan.spec)
    else:
        writer = None
        if inputs.representative is None and model is not None and not model.is_reduced:
            writer = (weights.reference or reference_of(model, progress)).model
        inputs, case = calibration_case(plan.spec, inputs, writer, progress)
        weights = replace(weights, quality_inputs=inputs, calibrated_on=inputs.representative)
    return replace(weights, scales=calibrated_scales(plan.options.cache, plan.spec, source, case, progress))
