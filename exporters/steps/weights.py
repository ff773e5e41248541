"""The fourth stage of an export: the weights that fill its graphs, and the inputs that they are rounded for."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from exporters.data.data_file import Region
from exporters.data.stored_scales import with_scales
from exporters.graph.quantization.cache_scales import Scales
from exporters.rounding.quantized_cache.check import check_cache_fused
from exporters.steps.graphs import Graphs
from exporters.steps.plan import Plan
from exporters.steps.static_activations import may_be_static
from exporters.steps.window_cache import check_windows_fused
from exporters.target.static_cache import cache_length
from exporters.verification.reference import Reference
from exporters.verification.verified_model import VerifiedModel, choose_model
from zoo.core.progress import Progress, Stage
from zoo.record.records import MixedRecord
from zoo.weights.source import WeightSource

if TYPE_CHECKING:
    from exporters.quality.parts import Representative
    from exporters.quality.quality_inputs import QualityInputs


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
            from exporters.rounding.bit_plan import check_smallest
            from exporters.rounding.size_budget import SizeBudget

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
    from exporters.quality.quality_inputs import QualityInputs
    from zoo.checkpoints.carried import tokenizer_origin

    progress(Stage("read representative inputs"))
    static = plan.target.static_cache and spec.decodes
    longest = cache_length(spec, options.cache_length) if static else None
    return QualityInputs.prepare(spec, tokenizer_origin(options.weights), options.calibrate, longest)


@contextmanager
def rounded_as_asked(weights: Weights, directory: Path, progress: Progress) -> Iterator[Weights]:
    """The weights rounded for representative inputs, with bits by a budget and cache scales, as far as the options ask for them.

    Float exports, and those rounded to nearest, never import :mod:`exporters.steps.rounding`.
    """
    options = weights.plan.options
    if not (options.calibrates or options.budget is not None or options.cache is not None):
        yield weights
        return
    from exporters.steps.rounding import rounded

    with rounded(weights, directory, progress) as result:
        yield result
