"""Sampling the next token from its scores."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from specs.base.errors import UserError, option_name

Floats = NDArray[np.float32]
Shares = NDArray[np.float64]
"""Probabilities."""


@dataclass(frozen=True)
class Sampling:
    """The sampling options: greedy at a ``temperature`` of 0, otherwise random.

    ``top_k`` keeps the k best tokens, ``top_p`` then the fewest that together have this probability, and ``min_p`` those with at
    least this part of the best one's. Raises :class:`specs.base.errors.UserError` for invalid numbers.
    """

    temperature: float = 0.0
    top_k: int | None = None
    top_p: float | None = None
    seed: int = 0
    min_p: float | None = None

    def __post_init__(self) -> None:
        for option, value, good, rule, remedy in (
            (option_name("temperature"), self.temperature, 0 <= self.temperature < math.inf, "be 0 or more, and finite", "Use 0 for greedy decoding, or 1 for the model's own probabilities."),
            (option_name("top_k"), self.top_k, self.top_k is None or self.top_k > 0, "be 1 or more", "Leave it out to keep all tokens."),
            (option_name("top_p"), self.top_p, self.top_p is None or 0 < self.top_p <= 1, "be above 0 and at most 1", "Leave it out or use 1 to keep all tokens."),
            ("min_p", self.min_p, self.min_p is None or 0 <= self.min_p <= 1, "be 0 to 1", "Leave it out to keep all tokens."),
            (option_name("seed"), self.seed, self.seed >= 0, "be 0 or more", "Use 0."),
        ):  # fmt: skip
            if not good:
                raise UserError(f"{option} must {rule}\n  value: {value}\n  {remedy}")


GREEDY = Sampling()
"""Greedy decoding."""


class Sampler:
    """Samples tokens for some rows, each with its own random numbers: rows do not affect each other."""

    def __init__(self, sampling: Sampling, rows: int) -> None:
        self._sampling = sampling
        self._generators = [np.random.default_rng([sampling.seed, row]) for row in range(rows)]

    def choose(self, scores: Floats) -> list[int]:
        """The next token of each row, from scores B V.

        Raises :class:`specs.base.errors.UserError` where the scores are not finite.
        """
        check_finite(scores)
        if self._sampling.temperature == 0:
            return [int(token) for token in scores.argmax(-1)]
        return [self._draw(row, generator) for row, generator in zip(scores, self._generators, strict=True)]

    def _draw(self, scores: Floats, generator: np.random.Generator) -> int:
        kept, shares = distribution(scores, self._sampling)
        return int(kept[draw(shares, generator)])


def check_finite(scores: Floats) -> None:
    """Raise :class:`specs.base.errors.UserError` unless the best of each row's scores is a finite number."""
    if not np.isfinite(scores.max(-1)).all():
        raise UserError(
            "The model's scores are not finite numbers\n"
            "  Check its weights, or export it in a precision with a larger range."
        )


def draw(shares: Shares, generator: np.random.Generator) -> int:
    """A random index, by its probability."""
    index = np.searchsorted(np.cumsum(shares), generator.random(), side="right")
    return min(int(index), len(shares) - 1)


def distribution(scores: Floats, sampling: Sampling) -> tuple[np.ndarray, np.ndarray]:
    """The candidate tokens, best first, and their probabilities, from scores V."""
    count = min(sampling.top_k or len(scores), len(scores))
    kept = np.argsort(-scores, kind="stable")[:count]
    logits = scores[kept].astype(np.float64) / sampling.temperature
    shares = np.exp(logits - logits[0])
    shares /= shares.sum()
    if sampling.top_p is not None:
        count = int(np.searchsorted(np.cumsum(shares), sampling.top_p)) + 1
        kept, shares = kept[:count], shares[:count] / shares[:count].sum()
    if sampling.min_p is not None:
        likely = shares >= sampling.min_p * shares[0]
        kept, shares = kept[likely], shares[likely] / shares[likely].sum()
    return kept, shares


def probabilities(scores: Floats, sampling: Sampling) -> Shares:
    """The probability of every token, V, from scores V: 1 for the best token in greedy decoding."""
    shares = np.zeros(len(scores))
    if sampling.temperature == 0:
        shares[scores.argmax()] = 1
    else:
        kept, values = distribution(scores, sampling)
        shares[kept] = values
    return shares
