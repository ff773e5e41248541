"""The choice between static and dynamic scales for the inputs of int8 products."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from exporters.steps.plan import Plan
from exporters.target.targets import TARGETS
from specs.base.errors import UserError, option_name

if TYPE_CHECKING:
    from exporters.quality.quality_inputs import QualityInputs


def with_activations(plan: Plan, inputs: QualityInputs | None) -> Plan:
    """The plan with its activations chosen: as asked for, otherwise static wherever scales can be calibrated.

    The plan itself if there is no choice. Raises :class:`specs.base.errors.UserError` where static scales are requested and
    impossible.
    """
    asked, unfit = plan.options.activations, _unfit(plan)
    if asked is None and unfit:
        return plan
    refusal = unfit or _without_inputs(inputs)
    if asked == "static" and refusal:
        raise UserError(
            f"{option_name('activations')} static {refusal}\n  Pass {option_name('activations')} dynamic, or leave it out."
        )
    chosen = asked or ("dynamic" if refusal else "static")
    return replace(plan, options=plan.options.changed(activations=chosen))


def may_be_static(plan: Plan) -> bool:
    """Whether the available inputs decide between static and dynamic scales."""
    return plan.options.real and plan.options.activations != "dynamic" and not _unfit(plan)


def _without_inputs(inputs: QualityInputs | None) -> str:
    """Return the reason why calibration is impossible; empty where it is possible."""
    if inputs is None:
        return "needs real weights\n  value: random weights, or none"
    if inputs.representative is None or not inputs.representative.calibration:
        return f"needs calibration inputs\n  value: {inputs.unjudged or 'none'}"
    return ""


def _unfit(plan: Plan) -> str:
    """Return the reason why the inputs of a model's products cannot have static scales; empty where they can."""
    spec, stack = plan.spec, plan.spec.encoder
    if plan.precision.name != "int8":
        return f"applies only to {option_name('precision')} int8\n  value: {plan.precision.name}"
    if not plan.target.multiplies_integers:
        able = ", ".join(name for name, target in TARGETS.items() if target.multiplies_integers)
        return f"applies only to targets that multiply 8-bit integers: {able}\n  value: {plan.target.name}"
    if spec.architecture != "encoder" or stack is None:
        return f"applies only to encoders\n  value: {spec.architecture}"
    if len({*stack.owners()}) < len(stack.owners()):
        return (
            "needs layers that share no weights, as each use has its own input range\n  value: shared layers"
        )
    return ""
