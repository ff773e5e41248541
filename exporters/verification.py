"""Proof that the written files compute what the PyTorch model computes.

The files are loaded in ONNX Runtime as a client would load them, but that weights of the model itself which are not
rounded stay unpacked, and every output of every case is compared with the model's full forward pass.  Cached decoding is
compared with the full pass too, never with itself.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from exporters.cases import Case, cases
from exporters.observed import Loaded, RefusalError, load, run
from exporters.precisions import Precision
from exporters.reference import Reference, TakeStored, expect, overflow_of, real_places, roundings_of
from exporters.targets import Padding, Target
from specs.errors import UserError
from zoo.tracing.tasks import Task

ROUNDING = 8
"""How many times as far as PyTorch's own arithmetic an export may be from a more exact one, where that is more."""

NOT_FINITE = "it is not finite"

THE_FILES = "the files"
LIFTED = "the files with float32 in the place of bfloat16, every result rounded to bfloat16"
"""What runs: ONNX Runtime has no bfloat16 kernels for processors, nor its Python interface such inputs."""


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
        if (rounded := verification.worst_weight) is not None:
            lines.append(
                f"of its weights {rounded.name} is furthest from what it was: {rounded.error:.2%} "
                f"(root mean square), and {rounded.limit:.2%} is allowed in {verification.precision}"
            )
        if verification.overflow:
            lines.append(verification.overflow)
        super().__init__("\n  ".join(lines))


@dataclass(frozen=True)
class RoundedWeight:
    """A weight that is stored rounded: the root mean square of the difference over its own, and how much is allowed."""

    name: str
    error: float
    limit: float

    @property
    def passed(self) -> bool:
        """Whether it is close enough to what it was."""
        return self.error <= self.limit


@dataclass(frozen=True)
class Comparison:
    """One output of one case: the largest difference, absolute and relative to the largest value there.

    ``top_token`` is the share of positions whose highest score is the same token, for scores of a vocabulary, and
    ``moved`` the largest difference, relative to the largest value, both from the model with its weights as they were;
    ``fault`` says why there is nothing to compare, and the differences are then infinite.  ``rounding`` is there
    where more than usual is allowed: PyTorch's own largest distance from arithmetic that is more exact.
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

    ``ran`` says what was run; ``worst_weight`` is the one that rounding has changed most, where weights are rounded;
    ``overflow`` names a layer whose results are too large for the precision.  ``not_run`` is the provider that the graphs
    are for, where they ran on another.
    """

    provider: str
    runtime: str
    subject: str
    comparisons: tuple[Comparison, ...] = field(default=())
    precision: str = "fp32"
    ran: str = THE_FILES
    worst_weight: RoundedWeight | None = None
    overflow: str = ""
    not_run: str | None = None

    @property
    def passed(self) -> bool:
        """Whether every comparison passed, and every weight is close enough to what it was."""
        kept = self.worst_weight is None or self.worst_weight.passed
        return kept and bool(self.comparisons) and all(comparison.passed for comparison in self.comparisons)

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
        return replace(self, subject=subject, comparisons=(*self.comparisons, *others))


def verify(
    graphs: Mapping[Path, Task],
    reference: Reference,
    target: Target,
    precision: Precision,
    subject: str,
    progress: Callable[[str], None],
    written: Callable[[], None],
    take_stored: TakeStored | None,
    padding: Padding,
    main_only: bool,
) -> Verification:
    """Compare the graphs in files with a model that has its weights; ``written`` waits until they are there.

    ``take_stored`` gives the model the weights as they are stored, where they are rounded, and says how far each has
    moved; ``padding`` is the side on which the last graph takes it; ``main_only`` are the cases that a model is run on
    whose wiring is shown in all others by a twin.

    Raises :class:`VerificationError` on a breach, with the whole table.
    """
    import onnxruntime

    spec, places = reference.spec, [*graphs.values()][-1].places
    padding = "right" if places else padding
    dtype = precision.dtype_on(target)
    wanted = [case for case in cases(spec, padding, places) if case.main or not main_only]

    def loaded_graphs() -> list[Loaded]:
        written()
        # Packing all weights anew takes longer than the few calls of the main cases without.
        return [load(path, task, target, dtype, packed=not main_only) for path, task in graphs.items()]

    with ThreadPoolExecutor(1) as loader, torch.inference_mode():
        loading = loader.submit(loaded_graphs)  # leaves the interpreter free: PyTorch runs meanwhile
        expected = expect(reference, wanted, progress, written, take_stored)
        # The model gives back its memory before ONNX Runtime takes its own.
        reference.drop()
        # Where a rounded input turns a router's choice, all that follows differs: bfloat16's 8 bits are as coarse.
        coarse = torch.bfloat16 if precision.bits and expected.routed else dtype
        roundings = roundings_of(reference, coarse, expected)
        found: list[Comparison] = []
        provider = "none"
        try:
            loaded = loading.result()
            provider = loaded[0].session.get_providers()[0]
        except RefusalError as refusal:
            loaded, found = [], [_refused("loading", "", refusal)]
        for case, outputs in expected.outputs.items() if loaded else ():
            progress(f"{case.name}, ONNX Runtime")
            try:
                results = run(loaded, case, expected.per_token, padding)
            except RefusalError as refusal:
                found.append(_refused(case.name, case.shape, refusal))
            else:
                for output, got in results.items():
                    real = real_places(case, output, expected.per_token, dtype)
                    expecting, before = outputs[output], expected.original[case][output]
                    if output == "logits" and loaded[-1].task.last_only:
                        (expecting, real), (before, _) = _last(expecting, case), _last(before, case)
                    before = before if expected.moved else expecting
                    found.append(
                        _compare(case, output, got, expecting, before, real, precision.tolerance, roundings)
                    )
        infinite = any(comparison.fault == NOT_FINITE for comparison in found)
        overflow = overflow_of(reference.model, expected.outputs, dtype) if infinite else ""
    wanted_provider = target.providers[0]
    rounded = [RoundedWeight(name, error, precision.weight_error) for name, error in expected.moved.items()]
    result = Verification(
        provider,
        f"onnxruntime {onnxruntime.__version__}",
        subject,
        tuple(found),
        precision.name,
        LIFTED if dtype == torch.bfloat16 else THE_FILES,
        max(rounded, key=lambda weight: weight.error, default=None),
        overflow,
        None if provider == wanted_provider else wanted_provider,
    )
    if not result.passed:
        raise VerificationError(result)
    return result


def _last(values: Tensor, case: Case) -> tuple[Tensor, Tensor]:
    """What a full pass says of the last real token of each call: B C N, and B C, whether there is one to compare."""
    mask = case.batch.mask
    assert mask is not None
    bounds = zip([0, *case.ends], case.ends, strict=False)
    within = [mask[:, start:end].any(1) for start, end in bounds]
    places = [mask[:, :end].cumsum(1).argmax(1) for end in case.ends]  # of the last 1
    index = torch.stack(places, 1)[..., None].expand(-1, -1, values.shape[-1])
    there = torch.stack(within, 1)
    return values.gather(1, index), there if case.decided is None else there & case.decided[:, None]


def _compare(
    case: Case,
    output: str,
    got: Tensor,
    expected: Tensor,
    before: Tensor,
    real: Tensor,
    relative: float,
    roundings: Callable[[], Mapping[str, float]],
) -> Comparison:
    if got.shape != expected.shape:
        fault = f"it has shape {tuple(got.shape)}, and the model's {tuple(expected.shape)}"
        return _faulty(case.name, case.shape, output, fault)
    if not bool(torch.isfinite(got).all()):
        return _faulty(case.name, case.shape, output, NOT_FINITE)
    scores = output == "logits" and expected.dim() == 3
    moves = before is not expected
    got, expected, before = got[real].to(expected.dtype), expected[real], before[real]
    scale = float(expected.abs().max())
    difference = float((got - expected).abs().max())
    tolerance = relative * max(1.0, scale)
    rounding = None
    if difference > tolerance:  # some models make much of a rounding
        rounding = roundings().get(output)
        tolerance = max(tolerance, ROUNDING * (rounding or 0.0))
    top = float((got.argmax(-1) == before.argmax(-1)).float().mean()) if scores else None
    moved = float((got - before).abs().max()) / (float(before.abs().max()) or 1.0) if moves else None
    passed = difference <= tolerance
    return Comparison(
        case.name,
        case.shape,
        output,
        difference,
        difference / (scale or 1.0),
        tolerance,
        top,
        passed,
        rounding=rounding,
        moved=moved,
    )


def _faulty(case: str, shape: str, output: str, fault: str) -> Comparison:
    return Comparison(case, shape, output, math.inf, math.inf, 0.0, None, False, fault)


def _refused(case: str, shape: str, refusal: RefusalError) -> Comparison:
    return _faulty(case, shape, "all outputs", f"ONNX Runtime refuses it: {refusal}")
