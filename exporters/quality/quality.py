"""The result of the second claim: the figures of the files against the float model, and the budget."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from exporters.quality.budget import Budget
from specs.base.errors import UserError


@dataclass(frozen=True)
class Measure:
    """A figure of quality: its ``label`` in tables, and its unit or range."""

    label: str
    form: str
    lower_is_better: bool = False


SHORT = {"kl": "KL {:.2e}", "cosine": "cosine {:.5f}"}
"""The measures that budgets limit, as they are abbreviated."""


def abbreviated(figures: Mapping[str, float]) -> str:
    """The figure that a budget limits, such as ``KL 9.88e-03``; empty without one."""
    return next((form.format(figures[name]) for name, form in SHORT.items() if name in figures), "")


class _Measures(dict[str, Measure]):
    """Measures by record name; ``same_neighbours.dense`` is the measure ``same_neighbours`` of the head ``dense``."""

    def __missing__(self, name: str) -> Measure:
        measure, _, head = name.partition(".")
        if not head:
            raise KeyError(name)
        return replace(self[measure], label=f"{self[measure].label}, {head}")


MEASURES = _Measures(
    {
        "kl": Measure("KL divergence from float, nats", ".2e", True),
        "top_token": Measure("same top token", ".2%"),
        "perplexity": Measure("perplexity", ".4f", True),
        "reference_perplexity": Measure("perplexity of float", ".4f", True),
        "cosine": Measure("cosine to float, mean", ".5f"),
        "least_cosine": Measure("cosine to float, least", ".5f"),
        "same_neighbours": Measure("same 10 nearest neighbours", ".2%"),
        "same_matches": Measure("same best match of text and image", ".2%"),
        "token_error_rate": Measure("token error rate against float", ".2%", True),
        "greedy_acceptance": Measure("accepted in greedy decoding", ".2%"),
        "greedy_tokens_per_call": Measure("tokens per call in greedy decoding", ".2f"),
        "sampling_acceptance": Measure("accepted in sampling", ".2%"),
        "sampling_tokens_per_call": Measure("tokens per call in sampling", ".2f"),
    }
)
"""All figures by record name."""


@dataclass(frozen=True)
class Cost:
    """The cost of rounding one part of the model alone, in the budget's measure: the KL divergence, or 1 - cosine."""

    part: str
    cost: float


@dataclass(frozen=True)
class Quality:
    """The figures by name, the inputs, the reference, and the budget.

    ``layers`` and ``roles`` list the costs of the model's parts in descending order, ``weights`` is the cost of rounding all
    weights; the rest of the loss comes from rounding activations. They are empty unless requested.  ``kinds`` are the figures by
    kind of text, if the inputs have several.
    """

    inputs: str
    reference: str
    figures: Mapping[str, float]
    budget: Budget | None = None
    layers: tuple[Cost, ...] = field(default=())
    roles: tuple[Cost, ...] = field(default=())
    weights: float | None = None
    kinds: Mapping[str, Mapping[str, float]] = field(default_factory=dict)

    @property
    def main(self) -> str:
        """The name of the figure that says most: the budget's, or else the first."""
        return self.budget.measure if self.budget is not None else next(iter(self.figures))

    def of_kinds(self) -> list[tuple[str, float]]:
        """The main figure of each kind of text, those that lose most first."""
        values = [(kind, figures[self.main]) for kind, figures in self.kinds.items()]
        return sorted(values, key=lambda pair: pair[1], reverse=MEASURES[self.main].lower_is_better)

    @property
    def loss(self) -> float | None:
        """The measure of costs: the KL divergence, or 1 - cosine."""
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
            "layers": {cost.part: cost.cost for cost in self.layers},
            "roles": {cost.part: cost.cost for cost in self.roles},
            "weights": self.weights,
            "kinds": {kind: dict(figures) for kind, figures in self.kinds.items()},
        }


class QualityError(UserError):
    """The files lose more than their budget allows; none were kept."""

    def __init__(self, quality: Quality, remedies: str, adapter: str = "") -> None:
        self.quality = quality
        assert quality.budget is not None
        breach = quality.budget.breach(quality.figures)
        lines = [f"With the adapter {adapter}: {breach}" if adapter else breach]
        for name, costs in (("Layers", quality.layers), ("Parts", quality.roles)):
            if costs:
                dearest = ", ".join(f"{cost.part} {cost.cost:.1e}" for cost in costs[:5])
                lines.append(f"{name} that cost most when rounded alone: {dearest}.")
        if quality.weights is not None:
            lines.append(shares(quality))
        super().__init__("\n  ".join([*lines, remedies]))

    @property
    def evidence(self) -> dict[str, Any]:
        """The measures that show it, as JSON data."""
        return {"quality": self.quality.as_dict()}


def shares(quality: Quality) -> str:
    """The share of the loss that rounding of weights explains."""
    return (
        f"Rounding all weights costs {quality.weights:.1e} of {quality.loss:.1e}; the rest comes from rounding activations "
        "and the cache."
    )
