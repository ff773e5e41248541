"""Costs of two models, side by side."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from specs.base.errors import UserError, option_name
from specs.model.model import Model
from zoo.reports.costs import StageCosts, costs
from zoo.reports.folding import Folded
from zoo.reports.lengths import DEFAULT_LENGTH
from zoo.reports.memory import DTYPES, TrainingState, cache, stored_bytes
from zoo.reports.module_pairs import in_order
from zoo.reports.parameters import ParameterReport, folded_report

PRECISION = DTYPES["fp16"]


@dataclass(frozen=True)
class Quantity:
    """A cost of two models in a unit: parameters, FLOPs or bytes; None for a model without it.

    ``tokens``: the number of tokens that it covers; None if it does not depend on tokens.
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
class ComparedSizes:
    """The sizes of a comparison: batch, tokens per sequence, past tokens of a decoding step."""

    batch: int
    length: int
    past: int

    @classmethod
    def of(cls, specs: tuple[Model, Model], batch: int, length: int | None = None) -> ComparedSizes:
        """The sizes for a length, by default the usual one, limited by the shortest context.

        Raises :class:`specs.base.errors.UserError` for a length that exceeds a context.
        """
        limits = [(limit, spec) for spec in specs if (limit := _context(spec)) is not None]
        shortest, spec = min(limits, key=lambda context: context[0], default=(None, specs[0]))
        if length is not None and shortest is not None and length > shortest:
            raise UserError(
                f"{option_name('length')} must fit the context of {spec.name}\n  value: {length}\n  Use {shortest} or less."
            )
        length = length or min(DEFAULT_LENGTH, shortest or DEFAULT_LENGTH)
        return cls(batch, length, min(length, (shortest or length + 1) - 1))


def _context(spec: Model) -> int | None:
    """The context length of a model; None if unlimited or if all inputs have one length."""
    lengths = [
        spec.context_length_of(stack) for _, stack in spec.stacks() if spec.embedding_of(stack).any_length
    ]
    return min((length for length in lengths if length is not None), default=None)


@dataclass(frozen=True)
class Amount:
    """A cost of one model in a unit; ``tokens``: the number of tokens that it covers, or None."""

    count: int
    unit: str
    tokens: int | None = None


@dataclass(frozen=True)
class Measured:
    """A spec with its model, built without weights, and the costs of each stage; ``fault`` explains missing costs."""

    spec: Model
    folded: Folded
    parameters: ParameterReport
    stages: Mapping[str, StageCosts]
    fault: str = ""

    @classmethod
    def of(cls, spec: Model) -> Measured:
        """Measure a spec; a component that cannot be traced leaves it without costs."""
        folded = Folded.of(spec)
        report = folded_report(folded)
        try:
            return cls(spec, folded, report, costs(spec).stages)
        except UserError as error:
            return cls(spec, folded, report, {}, str(error))

    def flops(self, sizes: ComparedSizes) -> dict[str, int]:
        """FLOPs of each module with its submodules in one pass over all tokens, by path."""
        totals, symbols = {"": 0}, self._symbols(sizes)
        for name, stage in self.stages.items():
            for paths, part in stage.modules.groups() if name != "step" else ():
                count = part.at(**symbols)
                for outer in itertools.chain.from_iterable(map(_around, paths)):
                    totals[outer] = totals.get(outer, 0) + count
        return totals

    def amounts(self, sizes: ComparedSizes) -> dict[str, Amount]:
        """The model's parameters, FLOPs, and memory in half precision.

        FLOPs count matrix products. Training memory is weights, gradients and Adam's state, without activations.
        """
        report = self.parameters
        amounts = {
            "parameters": Amount(report.total_parameters, "parameters"),
            "active parameters": Amount(report.active_parameters, "parameters"),
            "without embeddings": Amount(report.non_embedding_parameters, "parameters"),
        }
        symbols = self._symbols(sizes)
        for name, stage in self.stages.items():
            total, tokens = stage.total, sizes.past if name == "step" else sizes.length
            by_length = {"T", "P", "S"}.intersection(total.symbols)
            amounts[name] = Amount(total.at(**symbols), "FLOPs", tokens if by_length else None)
        amounts["weights"] = Amount(stored_bytes(self.folded, PRECISION), "bytes")
        if kept := cache(self.folded, PRECISION):
            amounts["cache per token"] = Amount(kept.bytes_per_token, "bytes")
            if kept.state_bytes:
                amounts["state"] = Amount(kept.state_bytes, "bytes")
            needed = kept.needed(sizes.batch, sizes.length, symbols["S"])
            amounts["cache"] = Amount(needed, "bytes", sizes.length)
        amounts["training"] = Amount(TrainingState.of(self.folded, PRECISION).total, "bytes")
        return amounts

    def _symbols(self, sizes: ComparedSizes) -> dict[str, int]:
        """The values of the cost symbols: an encoder reads as many tokens as a decoder, unless its input size is fixed."""
        encoder = self.spec.encoder
        fixed = encoder is not None and not self.spec.embedding_of(encoder).any_length
        read = self.spec.context_length_of(encoder) if encoder is not None and fixed else None
        return {"B": sizes.batch, "T": sizes.length, "P": sizes.past, "S": read or sizes.length}


def _around(path: str) -> Iterator[str]:
    """The paths of a module and of all its parents."""
    names = path.split(".")
    return (".".join(names[:depth]) for depth in range(len(names) + 1))


def quantities(a: Measured, b: Measured, sizes: ComparedSizes) -> list[Quantity]:
    """The costs of both models, in a common order."""
    ours, theirs = a.amounts(sizes), b.amounts(sizes)
    if "forward" in ours or "forward" in theirs:  # an encoder's only stage: compared with a decoder's prefill
        ours, theirs = (
            {"forward" if name == "prefill" else name: amount for name, amount in side.items()}
            for side in (ours, theirs)
        )
    if all(side["active parameters"] == side["parameters"] for side in (ours, theirs)):
        del ours["active parameters"], theirs["active parameters"]
    pairs = []
    for name in in_order(list(ours), list(theirs)):
        x, y = ours.get(name), theirs.get(name)
        first = x or y
        assert first is not None
        tokens = next((side.tokens for side in (x, y) if side and side.tokens is not None), None)
        pairs.append(Quantity(name, first.unit, x.count if x else None, y.count if y else None, tokens))
    return pairs
