"""Checks that run before an export starts."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import onnx

from exporters.graph.precisions import PRECISIONS
from exporters.layouts import LAYOUTS, Deployment, check_layout
from exporters.quality.claim import Claim
from exporters.rounding.quantized_cache.check import check_cache_format
from exporters.steps.options import ExportOptions
from exporters.steps.plan import ExportPlan
from exporters.target.kernels.placement import placement
from exporters.target.kernels.table import table_of
from exporters.target.static_cache import check_cache
from exporters.target.targets import TARGETS
from exporters.verification.engines.check import check_installed
from exporters.verification.verified_model import COPIES, check_memory
from specs.base.errors import UserError, option_name
from specs.kinds.head import VocabularyHead
from specs.model.model import Model
from zoo.builder import ZooModel
from zoo.checkpoints.open import open_weights
from zoo.core.tensors import weight_bytes, weight_count
from zoo.core.units import byte_text
from zoo.files.destination import check_destination
from zoo.weights.source import WeightSource


def check_exportable(
    model: ZooModel, spec: Model, destination: Path, options: ExportOptions
) -> WeightSource | None:
    """Check the options, the weights, the disk space and the memory; return the source of the weights.

    Raises :class:`specs.base.errors.UserError`.
    """
    check_options(model, spec, options)
    check_installed(options.engines)
    size = weight_bytes(model)
    source = (
        None if options.weights == "none" else open_weights(options.weights, model, spec, seed=options.seed)
    )
    if options.via == "torch":
        check_memory(
            f"{option_name('via')} torch",
            size * (1 + (COPIES if options.verify else 1)),
            f"export with {option_name('via')} fx",
        )
    precision = PRECISIONS[options.precision]
    check_destination(destination, 0 if source is None else precision.least_bytes(weight_count(model)))
    return source


def check_options(model: ZooModel, spec: Model, options: ExportOptions) -> None:
    """Raise :class:`specs.base.errors.UserError` where a layout, head or cache option does not apply to a model."""
    precision = PRECISIONS[options.precision]
    deployment = Deployment(model, spec, TARGETS[options.target], precision, options.weights)
    check_layout(LAYOUTS[options.layout], deployment)
    check_logits(spec, options.logits)
    check_cache(spec, LAYOUTS[options.layout].target(deployment.target), options.cache_length)
    check_cache_format(spec, deployment.target, LAYOUTS[options.layout], options.via, options.cache)


def check_tensors(plan: ExportPlan) -> None:
    """Raise :class:`specs.base.errors.UserError` where a weight is larger than a buffer of the target."""
    limit = plan.target.largest_tensor
    if limit is None:
        return
    for name, region in plan.regions.items():
        if region.length > limit:
            raise UserError(
                f"{option_name('target')} {plan.target.name} holds no tensor of more than {byte_text(limit)}\n"
                f"  value: {name} has {byte_text(region.length)} in {plan.precision.name}\n"
                f"  Use a {option_name('precision')} of fewer bits."
            )


def check_captured(plan: ExportPlan, files: Mapping[str, onnx.ModelProto]) -> None:
    """Raise :class:`specs.base.errors.UserError` where a graph that the client is to capture cannot be captured."""
    kernels = table_of(plan.target.providers[0])
    if not plan.options.cuda_graph or kernels is None:
        return
    for name, model in files.items():
        if reason := placement(model, kernels).not_captured:
            raise UserError(
                f"{name} cannot be captured as a CUDA graph: {reason}\n  Leave out {option_name('cuda_graph')}."
            )


def check_logits(spec: Model, logits: str) -> None:
    """Raise :class:`specs.base.errors.UserError` where only the last token's scores are requested of a model without
    scores."""
    decodes = spec.decodes
    if logits == "all" or (decodes and isinstance(spec.head, VocabularyHead)):
        return
    raise UserError(
        f"{option_name('logits')} last needs a decoder whose head scores the vocabulary for each token\n"
        f"  value: {spec.architecture}, head {spec.head.kind}\n"
        f"  Leave it out{', or set head.kind=language_modeling' if decodes else ''}."
    )


def check_rounding(options: ExportOptions, claim: Claim | None) -> None:
    """Raise :class:`specs.base.errors.UserError` where GPTQ is requested and no inputs are available."""
    if options.rounding != "gptq":
        return
    if claim is not None and claim.unjudged:
        raise UserError(
            f"{option_name('rounding')} gptq needs representative inputs\n  value: {claim.unjudged}\n"
            f"  Pass {option_name('calibrate')}, or {option_name('rounding')} nearest."
        )


def check_measurable(options: ExportOptions, claim: Claim | None) -> None:
    """Raise :class:`specs.base.errors.UserError` where a size budget is requested and no inputs are available to measure
    on."""
    if options.budget is not None and claim is not None and claim.unjudged:
        raise UserError(
            f"{option_name('budget')} needs representative inputs\n  value: {claim.unjudged}\n"
            f"  Pass {option_name('calibrate')}, or leave {option_name('budget')} out."
        )
