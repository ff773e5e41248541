"""What two models cost, side by side."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from specs.errors import UserError
from specs.model import Model
from zoo.builder import assemble
from zoo.reports.costs import Costs, costs
from zoo.reports.parameters import ParameterReport, parameter_report

USUAL_LENGTH = 1024
"""Tokens at which models are compared, where both are made for so many."""


@dataclass(frozen=True)
class Quantity:
    """A number that models have, in a unit: parameters, FLOPs or bytes; None where one has none.

    ``tokens`` is at how many it is, None where that is no matter to either.
    """

    name: str
    unit: str
    a: int | None
    b: int | None
    tokens: int | None = None

    def as_dict(self) -> dict[str, Any]:
        """As JSON data."""
        return asdict(self)


@dataclass(frozen=True)
class Measured:
    """A spec with the parameters of its modules and what each way to call it costs."""

    spec: Model
    parameters: ParameterReport
    costs: Costs

    @classmethod
    def of(cls, spec: Model) -> Measured:
        """A spec measured, its model built without weights."""
        return cls(spec, parameter_report(assemble(spec), spec), costs(spec))

    def flops(self, sizes: Mapping[str, int]) -> dict[str, int]:
        """What each module computes, with those within it, when a model reads all at once; by path."""
        totals: dict[str, int] = {"": 0}
        for name, stage in self.costs.stages.items():
            for path, part in stage.active.items() if name != "step" else ():
                count, parts = part.at(**sizes), path.split(".")
                for depth in range(len(parts) + 1):
                    outer = ".".join(parts[:depth])
                    totals[outer] = totals.get(outer, 0) + count
        return totals


def sizes_of(batch: int, length: int) -> dict[str, int]:
    """The sizes of a call: so many new tokens, or one after so many, or an encoder's."""
    return {"B": batch, "T": length, "P": length, "S": length}


def quantities(a: Measured, b: Measured, *, batch: int, length: int) -> list[Quantity]:
    """What both models cost: parameters, weights and caches in bfloat16, and the FLOPs of each way to call them.

    FLOPs are those of matrix products, of experts only those that tokens are sent to: of ``length`` tokens at once, and of
    one more after them.
    """
    ours, theirs = a.parameters, b.parameters
    found = [
        Quantity("parameters", "parameters", ours.total_parameters, theirs.total_parameters),
        Quantity(
            "without embeddings", "parameters", ours.non_embedding_parameters, theirs.non_embedding_parameters
        ),
        Quantity("weights in bfloat16", "bytes", ours.bytes()["bfloat16"], theirs.bytes()["bfloat16"]),
    ]
    return [*found, *_flops((a.costs, b.costs), batch, length)]


def _flops(sides: tuple[Costs, Costs], batch: int, length: int) -> Iterator[Quantity]:
    stages = [{name: stage.total_active for name, stage in side.stages.items()} for side in sides]
    if any("forward" in each for each in stages):  # an encoder's: a decoder reads a prompt as it does
        for each in stages:
            if "prefill" in each:
                each["forward"] = each.pop("prefill")
    for name in ("encode", "forward", "prefill", "step"):
        there = [each.get(name) for each in stages]
        by_length = any(part and {"T", "P", "S"} & {*part.symbols} for part in there)
        a, b = (None if part is None else part.at(**sizes_of(batch, length)) for part in there)
        if there != [None, None]:
            yield Quantity(name, "FLOPs", a, b, length if by_length else None)


def common_length(specs: tuple[Model, Model], wanted: int | None) -> int:
    """The length to compare models at: that which is wanted, or the usual one, or their shortest context.

    Raises :class:`specs.errors.UserError` for one that is beyond a context.
    """
    limits = [(limit, spec) for spec in specs if (limit := _context(spec)) is not None]
    shortest, spec = min(limits, key=lambda each: each[0], default=(USUAL_LENGTH, None))
    if wanted is None:
        return min(USUAL_LENGTH, shortest)
    if spec is not None and wanted > shortest:
        raise UserError(
            f"--length must not exceed the context of {spec.name}, which is {shortest}\n  value: {wanted}\n"
            f"  {shortest} or less would work"
        )
    return wanted


def _context(spec: Model) -> int | None:
    """The most tokens that a model is made for; None where it does not say, or reads none."""
    lengths = [
        spec.context_length_of(stack) for _, stack in spec.stacks() if spec.embedding_of(stack).takes_tokens
    ]
    return min((length for length in lengths if length is not None), default=None)
