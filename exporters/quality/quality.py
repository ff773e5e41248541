"""What the second claim found: how far the files are from the float model, and what was allowed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from exporters.quality.budget import Budget
from specs.errors import UserError


@dataclass(frozen=True)
class Measure:
    """A figure of quality: its ``label`` in tables, and its unit or range."""

    label: str
    form: str


MEASURES = {
    "kl": Measure("KL divergence from float, nats", ".2e"),
    "top_token": Measure("same top token", ".2%"),
    "perplexity": Measure("perplexity", ".4f"),
    "reference_perplexity": Measure("perplexity of float", ".4f"),
    "cosine": Measure("cosine to float, mean", ".5f"),
    "least_cosine": Measure("cosine to float, least", ".5f"),
    "same_neighbours": Measure("same 10 nearest neighbours", ".2%"),
    "token_error_rate": Measure("token error rate against float", ".2%"),
}
"""All figures, by the names that records have for them."""


@dataclass(frozen=True)
class Cost:
    """What rounding the weights of one part of the model costs alone, in the budget's measure.

    For KL divergence it is the divergence, for cosines 1 - cosine.
    """

    part: str
    cost: float


@dataclass(frozen=True)
class Quality:
    """The figures by name, what they were measured on, what the files were compared with, and the budget.

    ``layers`` and ``roles`` say which parts of the model cost what, the dearest first, and ``weights`` what rounding all of
    them costs: more than that is rounding of activations.  They are empty unless asked for.
    """

    inputs: str
    reference: str
    figures: Mapping[str, float]
    budget: Budget | None = None
    layers: tuple[Cost, ...] = field(default=())
    roles: tuple[Cost, ...] = field(default=())
    weights: float | None = None

    @property
    def loss(self) -> float | None:
        """What costs are a part of: the KL divergence, or 1 - cosine."""
        if "kl" in self.figures:
            return self.figures["kl"]
        return 1 - self.figures["cosine"] if "cosine" in self.figures else None

    @property
    def passed(self) -> bool:
        """Whether the figures are within the budget."""
        return self.budget is None or self.budget.holds(self.figures)

    def as_dict(self) -> dict[str, Any]:
        """As JSON data."""
        return {
            "inputs": self.inputs,
            "reference": self.reference,
            "figures": dict(self.figures),
            "budget": None if self.budget is None else self.budget.as_dict(),
            "passed": self.passed,
            "layers": {each.part: each.cost for each in self.layers},
            "roles": {each.part: each.cost for each in self.roles},
            "weights": self.weights,
        }


class QualityError(UserError):
    """Files that lose more than their budget allows; nothing was kept of them."""

    def __init__(self, quality: Quality, remedies: str) -> None:
        self.quality = quality
        assert quality.budget is not None
        lines = [quality.budget.breach(quality.figures)]
        for name, costs in (("layers", quality.layers), ("parts", quality.roles)):
            if costs:
                dearest = ", ".join(f"{each.part} {each.cost:.1e}" for each in costs[:5])
                lines.append(f"{name} that cost most, each rounded alone: {dearest}")
        if quality.weights is not None:
            lines.append(shares(quality))
        super().__init__("\n  ".join([*lines, remedies]))


def shares(quality: Quality) -> str:
    """How much of the loss is due to weights."""
    return (
        f"Rounding all weights costs {quality.weights:.1e} of {quality.loss:.1e}; what is more than that comes from rounding "
        "activations and the cache."
    )
