"""What two models cost, side by side."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import Any

import torch

from specs.errors import UserError
from specs.model import Model
from zoo.builder import ZooModel, assemble
from zoo.reports.costs import Costs, Stage, costs
from zoo.reports.memory import TrainingState, cache, stored_bytes
from zoo.reports.parameters import ParameterReport, parameter_report
from zoo.reports.roles import roles

PRECISION = torch.bfloat16
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
    """A spec with its model, built without weights, the parameters of that, and what each way to call it costs.

    Where it cannot be costed, ``fault`` says why, and there are no costs.
    """

    spec: Model
    model: ZooModel
    parameters: ParameterReport
    costs: Costs | None
    fault: str = ""

    @classmethod
    def of(cls, spec: Model) -> Measured:
        """A spec measured."""
        model = assemble(spec)
        report = parameter_report(model, spec)
        try:
            return cls(spec, model, report, costs(spec))
        except UserError as error:  # of a component that cannot be traced
            return cls(spec, model, report, None, str(error))

    @property
    def stages(self) -> dict[str, Stage]:
        """The ways to call the model, as far as they are costed."""
        return {} if self.costs is None else dict(self.costs.stages)

    def flops(self, sizes: Mapping[str, int]) -> dict[str, int]:
        """What each module computes, with those within it, when a model reads all at once; by path."""
        totals: dict[str, int] = {"": 0}
        for name, stage in self.stages.items():
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
    """What both models cost: parameters, FLOPs, and memory in bfloat16.

    FLOPs are those of matrix products, of experts only those that tokens are sent to: of ``length`` tokens at once, and of
    one more after them.  Training is weights, gradients and what Adam keeps, without activations.
    """
    return [*_parameters(a, b), *_flops(a, b, batch, length), *_memory(a, b, batch, length)]


def _parameters(a: Measured, b: Measured) -> Iterator[Quantity]:
    ours, theirs = a.parameters, b.parameters
    yield Quantity("parameters", "parameters", ours.total_parameters, theirs.total_parameters)
    active = [sum(role.active for role in roles(side.model)) for side in (a, b)]
    if active != [ours.total_parameters, theirs.total_parameters]:
        yield Quantity("active parameters", "parameters", *active)
    yield Quantity(
        "without embeddings", "parameters", ours.non_embedding_parameters, theirs.non_embedding_parameters
    )


def _memory(a: Measured, b: Measured, batch: int, length: int) -> Iterator[Quantity]:
    weights = [stored_bytes(side.model, PRECISION) for side in (a, b)]
    yield Quantity("weights", "bytes", *weights)
    ours, theirs = (cache(side.spec, PRECISION) for side in (a, b))
    if ours or theirs:
        per_token = [None if each is None else each.bytes_per_token for each in (ours, theirs)]
        kept = [None if each is None else each.needed(batch, length, length) for each in (ours, theirs)]
        yield Quantity("cache per token", "bytes", *per_token)
        yield Quantity("cache", "bytes", kept[0], kept[1], length)
    training = [TrainingState.of(side.model, PRECISION).total for side in (a, b)]
    yield Quantity("training", "bytes", *training)


def _flops(a: Measured, b: Measured, batch: int, length: int) -> Iterator[Quantity]:
    stages = [{name: stage.total_active for name, stage in side.stages.items()} for side in (a, b)]
    if any("forward" in each for each in stages):  # an encoder's: a decoder reads a prompt as it does
        for each in stages:
            if "prefill" in each:
                each["forward"] = each.pop("prefill")
    for name in ("encode", "forward", "prefill", "step"):
        there = [each.get(name) for each in stages]
        by_length = any(part and {"T", "P", "S"} & {*part.symbols} for part in there)
        counts = [None if part is None else part.at(**sizes_of(batch, length)) for part in there]
        if there != [None, None]:
            yield Quantity(name, "FLOPs", counts[0], counts[1], length if by_length else None)


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
