"""Checks that run before an export starts."""

from __future__ import annotations

from typing import TYPE_CHECKING

from exporters.graph.precisions import PRECISIONS
from exporters.layouts import LAYOUTS, Deployment, check_layout
from exporters.rounding.quantized_cache.check import check_cache_format
from exporters.steps.layer_outputs import check_outputs
from exporters.steps.options import ExportOptions
from exporters.steps.window_cache import check_window_cache
from exporters.target.static_cache import check_cache
from exporters.target.targets import TARGETS
from specs.base.errors import UserError, option_name
from specs.model.model import Model
from zoo.builder import ZooModel
from zoo.checkpoints.carried import check_files

if TYPE_CHECKING:
    from exporters.quality.quality_inputs import QualityInputs


def check_options(model: ZooModel, spec: Model, options: ExportOptions) -> None:
    """Raise :class:`specs.base.errors.UserError` where a layout, head or cache option does not apply to a model,
    or a file that accompanies its weights is damaged."""
    precision = PRECISIONS[options.precision]
    deployment = Deployment(model, spec, TARGETS[options.target], precision, options.weights)
    check_layout(LAYOUTS[options.layout], deployment)
    check_files(deployment.origin)
    check_stated(spec, options)
    if options.window_cache:
        check_window_cache(model, spec, deployment.target, LAYOUTS[options.layout])
    check_cache_format(spec, deployment.target, LAYOUTS[options.layout], options.via, options.cache)


def check_stated(spec: Model, options: ExportOptions) -> None:
    """Raise :class:`specs.base.errors.UserError` where an option does not apply to a spec, whatever its model is built of."""
    target = LAYOUTS[options.layout].target(TARGETS[options.target])
    check_logits(spec, options.logits)
    check_outputs(spec, options, target)
    check_cache(spec, target, options.cache_length)


def check_logits(spec: Model, logits: str) -> None:
    """Raise :class:`specs.base.errors.UserError` where only the last token's scores are requested of a model without
    scores."""
    decodes = spec.decodes
    if logits == "all" or (decodes and spec.head.scores_vocabulary):
        return
    raise UserError(
        f"{option_name('logits')} last needs a decoder whose head scores the vocabulary for each token\n"
        f"  value: {spec.architecture}, head {spec.head.kind}\n"
        f"  Leave it out{', or set head.kind=language_modeling' if decodes else ''}."
    )


def check_inputs(options: ExportOptions, inputs: QualityInputs | None) -> None:
    """Raise :class:`specs.base.errors.UserError` where GPTQ or a size budget is requested and no inputs are available."""
    if inputs is None or not inputs.unjudged:
        return
    reads_hidden = inputs.spec.reads_hidden_states
    for option, requested, instead in (
        (f"{option_name('rounding')} gptq", options.rounding == "gptq", f"{option_name('rounding')} nearest"),
        (option_name("budget"), options.budget is not None, f"leave {option_name('budget')} out"),
    ):
        if requested:
            remedy = f"Pass {option_name('calibrate')}, or {instead}."
            raise UserError(
                f"{option} needs representative inputs\n  value: {inputs.unjudged}\n"
                f"  {f'Leave {option} out.' if reads_hidden else remedy}"
            )
