"""Whether the inputs of an export's products are rounded with static scales, or as they come (dynamic)."""

from __future__ import annotations

from dataclasses import replace

from exporters.plan import Plan
from exporters.precisions import IN_HALF
from exporters.quality.claim import Claim
from specs.errors import UserError, option_name


def with_activations(plan: Plan, claim: Claim | None) -> Plan:
    """The plan with a choice: what was asked for, else static wherever scales can be had.

    None where there is no choice.  Raises :class:`specs.errors.UserError` where static scales are asked for and cannot be
    had.
    """
    asked, unfit = plan.options.activations, _unfit(plan)
    if asked is None and unfit:
        return plan
    refusal = unfit or _without_inputs(claim)
    if asked == "static" and refusal:
        raise UserError(
            f"{option_name('activations')} static {refusal}\n  Pass {option_name('activations')} dynamic, or leave it out."
        )
    chosen = asked or ("dynamic" if refusal else "static")
    return replace(plan, options=replace(plan.options, activations=chosen))


def may_be_static(plan: Plan) -> bool:
    """Whether the inputs that there are decide between static and dynamic scales."""
    return plan.options.real and plan.options.activations != "dynamic" and not _unfit(plan)


def _without_inputs(claim: Claim | None) -> str:
    """Why nothing can be calibrated, or nothing."""
    if claim is None:
        return "needs real weights\n  value: random weights, or none"
    if claim.inputs is None or not claim.inputs.calibration:
        return f"needs inputs to calibrate on\n  value: {claim.unjudged or 'none'}"
    return ""


def _unfit(plan: Plan) -> str:
    """Why the inputs of a model's products have no static scales, or nothing."""
    spec, stack = plan.spec, plan.spec.encoder
    if plan.precision.name != "int8":
        return f"applies to {option_name('precision')} int8\n  value: {plan.precision.name}"
    if plan.target.name in IN_HALF:
        return f"applies to targets that multiply 8-bit integers: portable, cpu\n  value: {plan.target.name}"
    if spec.architecture != "encoder" or stack is None:
        return f"applies to encoders\n  value: {spec.architecture}"
    if len({*stack.owners()}) < len(stack.owners()):
        return "needs layers with weights of their own: shared ones have other inputs each time\n  value: shared layers"
    return ""
