"""What verification found: every output of every case compared with the PyTorch model, and what rounding changed."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from specs.errors import UserError

NOT_FINITE = "it is not finite"

SCALE_ERROR = 0.02
"""How far the scale of a stored matrix may be from that of the original: rounding to nearest keeps it."""

PRODUCT_LIMIT = 2.0
"""How many times the expected error a product with rounded inputs may have: kernels round by block, by row or by tensor."""

TIES_LIMIT = 0.01
"""The largest share of cached codes that may differ at ties."""

THE_FILES = "the files"
LIFTED = "the files with float32 in the place of bfloat16, every result rounded to bfloat16"
"""What runs: ONNX Runtime has no bfloat16 kernels for processors, nor does its Python interface take such inputs."""

TWIN = "twin: "
"""How the cases of a twin begin, beside those of the model itself."""


class VerificationError(UserError):
    """An export that does not compute what its model computes; nothing was kept of it."""

    def __init__(self, verification: Verification) -> None:
        self.verification = verification
        lines = []
        if failed := [comparison for comparison in verification.comparisons if not comparison.passed]:
            worst = max(failed, key=lambda c: c.max_abs)
            difference = worst.fault or f"{worst.max_abs:.2e} where {worst.tolerance:.1e} is allowed"
            lines.append(
                f"the export differs from the PyTorch model: {worst.case}, {worst.output}: {difference}"
            )
        if not verification.comparisons:
            lines.append(
                "nothing could be compared: in every case a router of the model chooses between equal experts"
            )
        if (rounded := verification.worst_weight) is not None and not rounded.passed:
            lines.append(
                f"{rounded.name} is stored wrong: its error is {rounded.error:.2%} of its root mean square and its "
                f"scale {rounded.scale:.3f} of the original; {verification.precision} allows {rounded.limit:.2%} "
                f"and {1 - SCALE_ERROR:.2f} to {1 + SCALE_ERROR:.2f}"
            )
        if (product := verification.worst_product) is not None and not product.passed:
            lines.append(
                f"{product.name}: ONNX Runtime's error from rounding inputs to 8 bits is {product.error:.1f} times the "
                f"expected one, and {PRODUCT_LIMIT:.0f} times is allowed"
            )
        if (ties := verification.ties) is not None and not ties.passed:
            lines.append(
                f"the cache cannot be compared: {ties.at_ties} of {ties.compared} codes lie at the border between two, and "
                f"{TIES_LIMIT:.0%} is allowed"
            )
        if verification.overflow:
            lines.append(verification.overflow)
        super().__init__("\n  ".join(lines))


@dataclass(frozen=True)
class RoundedWeight:
    """A matrix stored in fewer bits: its error and its scale (see :class:`exporters.stored_weights.StoredWeight`), and
    the error that its precision allows."""

    name: str
    error: float
    scale: float
    limit: float

    @property
    def passed(self) -> bool:
        """Whether the stored values are the original ones but for rounding."""
        return self.share <= 1

    @property
    def share(self) -> float:
        """The fraction of the limit that it takes up: above 1 fails, and NaN counts as infinite.  A limit of 0 allows no error."""
        if not self.limit:
            return math.inf if self.error else 0.0
        share = max(self.error / self.limit, abs(self.scale - 1) / SCALE_ERROR)
        return share if share == share else math.inf


@dataclass(frozen=True)
class RoundedProduct:
    """A product whose inputs ONNX Runtime rounds to 8 bits: its error over that of the same rounding done in float32."""

    name: str
    error: float

    @property
    def passed(self) -> bool:
        """Whether the runtime's kernel adds no error of its own."""
        return self.error <= PRODUCT_LIMIT


@dataclass(frozen=True)
class CodeTies:
    """The cached codes that were compared, and how many of them lie as near to the border between two codes as float32 can
    tell: those may be either."""

    compared: int
    at_ties: int

    @property
    def passed(self) -> bool:
        """Whether so few are at ties that the comparison means something."""
        return self.at_ties <= TIES_LIMIT * self.compared

    def __add__(self, other: CodeTies) -> CodeTies:
        return CodeTies(self.compared + other.compared, self.at_ties + other.at_ties)


@dataclass(frozen=True)
class Comparison:
    """One output of one case: the largest difference, absolute and relative to the largest value there.

    Both sides have the weights as they are stored and round no activations.  What rounding changes is beside it:
    ``top_token`` is the share of positions whose highest score is the same token, for scores of a vocabulary, and
    ``moved`` the largest difference relative to the largest value, both of the files as they are from the model with its
    original weights.  ``fault`` says why there is nothing to compare, and the differences are then infinite.
    ``rounding`` is there where more than usual is allowed: the largest distance of PyTorch's float32 from float64.
    """

    case: str
    shape: str
    output: str
    max_abs: float
    max_rel: float
    tolerance: float
    top_token: float | None
    passed: bool
    fault: str = ""
    rounding: float | None = None
    moved: float | None = None

    def as_dict(self) -> dict[str, Any]:
        """As JSON data, in which what is infinite is null."""
        return {k: None if v == math.inf else v for k, v in asdict(self).items()}


@dataclass(frozen=True)
class Verification:
    """All comparisons, what they ran on, and what was compared (the model, or a smaller twin of it).

    ``ran`` says what was run; ``worst_weight`` is the one that rounding has changed most, where weights are rounded, and
    ``worst_product`` the one with the largest error of its own, where inputs are; ``overflow`` names a layer whose
    results are too large for the precision.  ``not_run`` is the provider that the graphs
    are for, where they ran on another.  ``ties`` are the codes of a quantized cache.
    """

    provider: str
    runtime: str
    subject: str
    comparisons: tuple[Comparison, ...] = field(default=())
    precision: str = "fp32"
    ran: str = THE_FILES
    worst_weight: RoundedWeight | None = None
    worst_product: RoundedProduct | None = None
    overflow: str = ""
    not_run: str | None = None
    ties: CodeTies | None = None

    @property
    def passed(self) -> bool:
        """Whether every comparison passed, and every weight is close enough to what it was."""
        rounded = [part for part in (self.worst_weight, self.worst_product, self.ties) if part is not None]
        return (
            all(part.passed for part in rounded)
            and bool(self.comparisons)
            and all(comparison.passed for comparison in self.comparisons)
        )

    @property
    def top_token(self) -> float | None:
        """The share of tokens, in the mean of the cases, whose highest score is that of the weights as they were."""
        shares = [comparison.top_token for comparison in self.comparisons if comparison.top_token is not None]
        return sum(shares) / len(shares) if shares else None

    @property
    def moved(self) -> float | None:
        """The largest difference from the model with its weights as they were, relative to the largest output."""
        return max((c.moved for c in self.comparisons if c.moved is not None), default=None)

    @property
    def max_abs(self) -> float:
        """The largest difference of all."""
        return max(comparison.max_abs for comparison in self.comparisons)

    @property
    def in_rounding(self) -> tuple[Comparison, ...]:
        """The comparisons that pass only as PyTorch is as far from more exact arithmetic itself: they prove little."""
        return tuple(c for c in self.comparisons if c.passed and c.rounding is not None)

    def as_dict(self) -> dict[str, Any]:
        """As JSON data."""
        return {**asdict(self), "comparisons": [c.as_dict() for c in self.comparisons], "passed": self.passed}

    @property
    def summary(self) -> list[Comparison]:
        """The comparisons, of which those of a twin are told by the worst of each output."""
        twins = [c for c in self.comparisons if c.case.startswith(TWIN)]
        cases, worst = len({c.case for c in twins}), dict[str, Comparison]()
        for comparison in sorted(twins, key=lambda c: c.max_abs):
            worst[comparison.output] = replace(comparison, case=f"{TWIN}worst of {cases} cases")
        return [*(c for c in self.comparisons if c not in twins), *worst.values()]

    def followed_by(self, twin: Verification) -> Verification:
        """The same, with the comparisons of a twin after its own."""
        others = [replace(c, case=f"{TWIN}{c.case}", top_token=None, moved=None) for c in twin.comparisons]
        subject = f"{self.subject}, and {twin.subject}"
        product = self.worst_product or twin.worst_product
        ties = self.ties if twin.ties is None or self.ties is None else self.ties + twin.ties
        return replace(
            self, subject=subject, comparisons=(*self.comparisons, *others), worst_product=product, ties=ties
        )
