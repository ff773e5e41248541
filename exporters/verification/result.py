"""The result of verification: every output of every case compared with the PyTorch model, and the effect of rounding."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from exporters.verification.engines.result import EngineResult
from specs.base.errors import UserError

NOT_FINITE = "not finite"

SCALE_ERROR = 0.02
"""The largest deviation of a stored matrix's scale from 1: rounding to nearest preserves the scale."""

PRODUCT_LIMIT = 2.0
"""The largest error of a product with rounded inputs, as a multiple of the expected error: kernels round by block, row or
tensor."""

TIES_LIMIT = 0.01
"""The largest share of cached codes that may differ at ties."""

THE_FILES = "the files"
LIFTED = "the files with float32 in place of bfloat16 and every result rounded to bfloat16"
"""The description of bfloat16 runs: ONNX Runtime's CPU provider and Python interface lack bfloat16."""

EMULATED = (
    "the files with experts dequantized from them, in place of CUDA's kernel for experts of 4-bit floats"
)
"""The description of runs of MXFP4 experts without CUDA: no other provider reads them."""

REDUCED = "reduced: "
"""The prefix of a reduced model's cases, which follow the model's own cases."""


class VerificationError(UserError):
    """An export does not compute what its model computes; no files were kept."""

    def __init__(self, verification: Verification) -> None:
        self.verification = verification
        lines = []
        if failed := [comparison for comparison in verification.comparisons if not comparison.passed]:
            worst = max(failed, key=lambda c: c.max_abs)
            difference = worst.fault or f"{worst.max_abs:.2e}, {worst.tolerance:.1e} allowed"
            lines.append(
                f"The export differs from the PyTorch model: {worst.case}, {worst.output}: {difference}."
            )
        if failed and verification.tied:
            lines.append(
                "In every case a router chooses between experts with equal scores, and either choice is right: "
                "export weights whose routers tell tokens apart."
            )
        if (rounded := verification.worst_weight) is not None and not rounded.passed:
            lines.append(
                f"{rounded.name} is stored incorrectly: its error is {rounded.error:.2%} of its root mean square and its "
                f"scale {rounded.scale:.3f} of the original; {verification.precision} allows {rounded.limit:.2%} "
                f"and {1 - SCALE_ERROR:.2f} to {1 + SCALE_ERROR:.2f}."
            )
        if (product := verification.worst_product) is not None and not product.passed:
            lines.append(
                f"{product.name}: ONNX Runtime's error from rounding inputs to 8 bits is {product.error:.1f} times the "
                f"expected error; at most {PRODUCT_LIMIT:.0f} times is allowed."
            )
        if (ties := verification.ties) is not None and not ties.passed:
            lines.append(
                f"The cache cannot be compared: {ties.at_ties} of {ties.compared} codes are ties between two neighbours; "
                f"at most {TIES_LIMIT:.0%} is allowed."
            )
        lines += [f"{engine}" for engine in verification.engines if not engine.passed]
        if verification.overflow:
            lines.append(verification.overflow)
        super().__init__("\n  ".join(lines))

    @property
    def evidence(self) -> dict[str, Any]:
        """The comparisons that show it, as JSON data."""
        return {"verification": self.verification.as_dict()}


@dataclass(frozen=True)
class RoundedWeight:
    """A matrix stored in fewer bits: its error and scale (see :class:`exporters.data.stored_weights.StoredWeight`), and
    the error that its precision allows."""

    name: str
    error: float
    scale: float
    limit: float

    @property
    def passed(self) -> bool:
        """Whether the stored values equal the original values except for rounding."""
        return self.share <= 1

    @property
    def share(self) -> float:
        """The error as a fraction of the limit: above 1 fails, and NaN counts as infinite. A limit of 0 allows no error."""
        if not self.limit:
            return math.inf if self.error else 0.0
        share = max(self.error / self.limit, abs(self.scale - 1) / SCALE_ERROR)
        return share if share == share else math.inf


@dataclass(frozen=True)
class RoundedProduct:
    """A product whose inputs ONNX Runtime rounds to 8 bits: its error relative to the same rounding done in float32."""

    name: str
    error: float

    @property
    def passed(self) -> bool:
        """Whether the runtime's kernel adds no error of its own."""
        return self.error <= PRODUCT_LIMIT


@dataclass(frozen=True)
class CodeTies:
    """The number of cached codes compared, and the number that may differ: within float32 rounding of a tie."""

    compared: int
    at_ties: int

    @property
    def passed(self) -> bool:
        """Whether few enough codes are at ties for the comparison to be meaningful."""
        return self.at_ties <= TIES_LIMIT * self.compared

    def __add__(self, other: CodeTies) -> CodeTies:
        return CodeTies(self.compared + other.compared, self.at_ties + other.at_ties)


@dataclass(frozen=True)
class OutputComparison:
    """One output of one case: the largest difference, absolute and relative to the largest value.

    Both sides have the stored weights and round no activations. ``top_token`` and ``moved`` show the effect of rounding:
    the share of positions with the same highest score, for vocabulary scores, and the largest difference between the files
    and the model with its original weights, relative to the largest value. ``fault`` is the reason why nothing can be
    compared; the differences are then infinite. ``rounding`` is set if more than the usual difference is allowed: the largest
    distance of PyTorch's float32 from float64.
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
        """As JSON data, with infinite values as null."""
        return {k: None if v == math.inf else v for k, v in asdict(self).items()}


@dataclass(frozen=True)
class Verification:
    """All comparisons, the runtime, and the ``subject`` (the model, or a reduced model).

    ``ran`` describes the files that ran. ``worst_weight`` is the weight with the largest rounding error, and
    ``worst_product`` the product with the largest error of its own, if inputs are rounded. ``overflow`` names a layer whose
    results exceed the range of the precision. ``not_run`` is the target's provider if another one ran. ``ties`` counts the
    codes of a quantized cache. ``tied``: in every case a router chooses between experts with equal scores. ``engines`` has the
    results of other engines. ``constant`` names the outputs that no input changes, whose comparison shows nothing.
    """

    provider: str
    runtime: str
    subject: str
    comparisons: tuple[OutputComparison, ...] = field(default=())
    precision: str = "fp32"
    ran: str = THE_FILES
    worst_weight: RoundedWeight | None = None
    worst_product: RoundedProduct | None = None
    overflow: str = ""
    not_run: str | None = None
    ties: CodeTies | None = None
    tied: bool = False
    engines: tuple[EngineResult, ...] = ()
    constant: tuple[str, ...] = ()

    @property
    def passed(self) -> bool:
        """Whether every comparison passed, and every weight is within its limit."""
        rounded = [part for part in (self.worst_weight, self.worst_product, self.ties) if part is not None]
        return (
            all(part.passed for part in rounded)
            and bool(self.comparisons)
            and all(comparison.passed for comparison in self.comparisons)
            and all(engine.passed for engine in self.engines)
        )

    @property
    def where(self) -> str:
        """The runtime and the engines that verified it."""
        return ", ".join([self.runtime, *(engine.claim.name for engine in self.engines)])

    @property
    def top_token(self) -> float | None:
        """The share of tokens whose highest score is the same as with the original weights, averaged over the cases."""
        shares = [comparison.top_token for comparison in self.comparisons if comparison.top_token is not None]
        return sum(shares) / len(shares) if shares else None

    @property
    def moved(self) -> float | None:
        """The largest difference from the model with its original weights, relative to the largest output."""
        return max((c.moved for c in self.comparisons if c.moved is not None), default=None)

    @property
    def max_abs(self) -> float:
        """The largest difference of all comparisons."""
        return max(comparison.max_abs for comparison in self.comparisons)

    @property
    def in_rounding(self) -> tuple[OutputComparison, ...]:
        """The comparisons that pass only because float32 rounding error is as large: weak evidence."""
        return tuple(c for c in self.comparisons if c.passed and c.rounding is not None)

    def as_dict(self) -> dict[str, Any]:
        """As JSON data."""
        return {**asdict(self), "comparisons": [c.as_dict() for c in self.comparisons], "passed": self.passed}

    @property
    def summary(self) -> list[OutputComparison]:
        """The comparisons; a reduced model is summarized by the worst comparison of each output."""
        reduced = [c for c in self.comparisons if c.case.startswith(REDUCED)]
        cases, worst = len({c.case for c in reduced}), dict[str, OutputComparison]()
        for comparison in sorted(reduced, key=lambda c: c.max_abs):
            worst[comparison.output] = replace(comparison, case=f"{REDUCED}worst of {cases} cases")
        return [*(c for c in self.comparisons if c not in reduced), *worst.values()]

    def followed_by(self, reduced: Verification) -> Verification:
        """This verification with the comparisons of a reduced model appended."""
        others = [
            replace(c, case=f"{REDUCED}{c.case}", top_token=None, moved=None) for c in reduced.comparisons
        ]
        subject = f"{self.subject}, and {reduced.subject}"
        product = self.worst_product or reduced.worst_product
        theirs = {result.engine: result for result in reduced.engines}
        ties = self.ties if reduced.ties is None or self.ties is None else self.ties + reduced.ties
        return replace(
            self,
            subject=subject,
            comparisons=(*self.comparisons, *others),
            worst_product=product,
            ties=ties,
            tied=self.tied or reduced.tied,
            constant=(*self.constant, *(f"{REDUCED}{output}" for output in reduced.constant)),
            engines=tuple(
                own.followed_by(theirs[own.engine]) if own.engine in theirs else own for own in self.engines
            ),
        )
