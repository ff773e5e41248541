"""What two models cost, side by side."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from specs.errors import UserError, option_name
from specs.model import Model
from zoo.reports.costs import Stage, costs
from zoo.reports.folding import Folded
from zoo.reports.memory import DTYPES, TrainingState, cache, stored_bytes
from zoo.reports.module_pairs import in_order
from zoo.reports.parameters import ParameterReport, folded_report
from zoo.reports.report import USUAL
from zoo.reports.roles import roles

PRECISION = DTYPES["fp16"]


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
class Sizes:
    """The sizes at which models are compared: sequences at once, tokens of each, tokens before one more."""

    batch: int
    length: int
    past: int

    @classmethod
    def of(cls, specs: tuple[Model, Model], batch: int, length: int | None = None) -> Sizes:
        """A batch of the length that is wanted, or of the usual one, or of the shortest context.

        Raises :class:`specs.errors.UserError` for a length that is beyond a context.
        """
        limits = [(limit, spec) for spec in specs if (limit := _context(spec)) is not None]
        shortest, spec = min(limits, key=lambda each: each[0], default=(None, specs[0]))
        if length is not None and shortest is not None and length > shortest:
            raise UserError(
                f"{option_name('length')} must fit the context of {spec.name}\n  value: {length}\n  {shortest} or less would work"
            )
        length = length or min(USUAL, shortest or USUAL)
        return cls(batch, length, min(length, (shortest or length + 1) - 1))


def _context(spec: Model) -> int | None:
    """The most tokens that a model is made for; None where it does not say, or reads none."""
    lengths = [
        spec.context_length_of(stack) for _, stack in spec.stacks() if spec.embedding_of(stack).takes_tokens
    ]
    return min((length for length in lengths if length is not None), default=None)


@dataclass(frozen=True)
class Amount:
    """What one model has of a quantity, in a unit; ``tokens`` is at how many, None where that is no matter."""

    count: int
    unit: str
    tokens: int | None = None


@dataclass(frozen=True)
class Measured:
    """A spec with its model, built without weights, and what each way to call it costs; ``fault`` says why nothing does."""

    spec: Model
    folded: Folded
    parameters: ParameterReport
    stages: Mapping[str, Stage]
    fault: str = ""

    @classmethod
    def of(cls, spec: Model) -> Measured:
        """A spec measured; a component that cannot be traced leaves it without costs."""
        folded = Folded.of(spec)
        report = folded_report(folded)
        try:
            return cls(spec, folded, report, costs(spec).stages)
        except UserError as error:
            return cls(spec, folded, report, {}, str(error))

    def flops(self, sizes: Sizes) -> dict[str, int]:
        """What each module computes, with those within it, when a model reads all at once; by path."""
        totals, symbols = {"": 0}, self._symbols(sizes)
        for name, stage in self.stages.items():
            for paths, part in stage.active.groups() if name != "step" else ():
                count = part.at(**symbols)
                for outer in itertools.chain.from_iterable(map(_around, paths)):
                    totals[outer] = totals.get(outer, 0) + count
        return totals

    def amounts(self, sizes: Sizes) -> dict[str, Amount]:
        """What the model costs: parameters, FLOPs, and memory in halves.

        FLOPs are those of matrix products, of experts only those that tokens are sent to.  Training is weights,
        gradients and what Adam keeps, without activations.
        """
        report = self.parameters
        found = {
            "parameters": Amount(report.total_parameters, "parameters"),
            "active parameters": Amount(sum(role.active for role in roles(self.folded)), "parameters"),
            "without embeddings": Amount(report.non_embedding_parameters, "parameters"),
        }
        symbols = self._symbols(sizes)
        for name, stage in self.stages.items():
            total, tokens = stage.total_active, sizes.past if name == "step" else sizes.length
            by_length = {"T", "P", "S"}.intersection(total.symbols)
            found[name] = Amount(total.at(**symbols), "FLOPs", tokens if by_length else None)
        found["weights"] = Amount(stored_bytes(self.folded, PRECISION), "bytes")
        if kept := cache(self.spec, PRECISION):
            found["cache per token"] = Amount(kept.bytes_per_token, "bytes")
            needed = kept.needed(sizes.batch, sizes.length, symbols["S"])
            found["cache"] = Amount(needed, "bytes", sizes.length)
        found["training"] = Amount(TrainingState.of(self.folded, PRECISION).total, "bytes")
        return found

    def _symbols(self, sizes: Sizes) -> dict[str, int]:
        """What the symbols of costs stand for: an encoder reads as many tokens as a decoder, unless all inputs are of one size."""
        encoder = self.spec.encoder
        fixed = encoder is not None and not self.spec.embedding_of(encoder).takes_tokens
        read = self.spec.context_length_of(encoder) if encoder is not None and fixed else None
        return {"B": sizes.batch, "T": sizes.length, "P": sizes.past, "S": read or sizes.length}


def _around(path: str) -> Iterator[str]:
    """The paths of a module and of all those around it."""
    names = path.split(".")
    return (".".join(names[:depth]) for depth in range(len(names) + 1))


def quantities(a: Measured, b: Measured, sizes: Sizes) -> list[Quantity]:
    """What both models cost, in one order."""
    ours, theirs = a.amounts(sizes), b.amounts(sizes)
    if "forward" in ours or "forward" in theirs:  # an encoder's: a decoder reads a prompt as it does
        ours, theirs = (
            {"forward" if name == "prefill" else name: amount for name, amount in side.items()}
            for side in (ours, theirs)
        )
    if all(side["active parameters"] == side["parameters"] for side in (ours, theirs)):
        del ours["active parameters"], theirs["active parameters"]
    found = []
    for name in in_order(list(ours), list(theirs)):
        x, y = ours.get(name), theirs.get(name)
        first = x or y
        assert first is not None
        tokens = next((each.tokens for each in (x, y) if each and each.tokens is not None), None)
        found.append(Quantity(name, first.unit, x.count if x else None, y.count if y else None, tokens))
    return found
