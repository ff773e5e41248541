"""The budget: the loss of quality allowed for a precision."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

KL, COSINE = "kl", "cosine"
"""The figures with a budget: for scores, and for vectors."""


@dataclass(frozen=True)
class Limits:
    """The largest KL divergence from the float model, in nats, and the smallest mean cosine to it."""

    max_kl: float
    min_cosine: float


LIMITS = {
    "fp16": Limits(1e-3, 0.9999),
    "bf16": Limits(1e-2, 0.999),
    "int8": Limits(0.05, 0.98),
    "int4": Limits(0.5, 0.95),
    "q4f16": Limits(0.5, 0.95),
}
"""The default budget of each precision that rounds: above the loss of published models with every weight rounded to nearest.

SmolLM2-135M has a divergence of 0.011 in int8 and of 0.37 in int4, MiniLM-L6 cosines of 0.992 and 0.964.
"""

EXACT = Limits(0.0, 1.0)
"""The budget of a precision that does not round."""

CACHE_LIMITS = {"int8": Limits(0.01, 0.999), "int4": Limits(0.3, 0.98)}
"""The additional loss allowed for a quantized cache."""


@dataclass(frozen=True)
class Budget:
    """The limit of one figure of an export: a maximum KL divergence, or a minimum cosine."""

    measure: str
    limit: float
    precision: str

    def holds(self, figures: Mapping[str, float]) -> bool:
        """Whether the figure is within the limit; NaN is not."""
        value = figures.get(self.measure, math.nan)
        return value <= self.limit if self.measure == KL else value >= self.limit

    def breach(self, figures: Mapping[str, float]) -> str:
        """The rule and the value, if the limit is exceeded."""
        value = figures.get(self.measure, math.nan)
        if self.measure == KL:
            return (
                f"{self.precision} loses too much: its KL divergence from the float model is {value:.3g} nats; at most "
                f"{self.limit:.3g} is allowed."
            )
        return (
            f"{self.precision} loses too much: its mean cosine to the float model is {value:.5f}; at least "
            f"{self.limit:.5g} is required."
        )

    def as_dict(self) -> dict[str, Any]:
        """As JSON data."""
        return asdict(self)


def budget_of(
    figures: Mapping[str, float],
    precision: str,
    max_kl: float | None,
    min_cosine: float | None,
    cache: str = "float",
) -> Budget:
    """The budget of the measured figure: the user's limit, or the default of the precision and the cache."""
    limits, own = LIMITS.get(precision, EXACT), CACHE_LIMITS.get(cache)
    if own is not None:
        limits = Limits(limits.max_kl + own.max_kl, limits.min_cosine + own.min_cosine - 1)
        precision = f"{precision} with an {cache} cache"
    if KL in figures:
        return Budget(KL, limits.max_kl if max_kl is None else max_kl, precision)
    return Budget(COSINE, limits.min_cosine if min_cosine is None else min_cosine, precision)
