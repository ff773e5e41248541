"""The comparison of the written files with the PyTorch model.

The graphs run in their exact form, which rounds no activations: every output of every case is compared with the model's full
pass with the stored weights. Cached decoding is also compared with the full pass, never with itself. The files themselves run
in the same cases; their distance from the original weights is reported.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import onnx
import torch
from torch import Tensor

from exporters.target.targets import Padding
from exporters.verification.cases import Case, cases
from exporters.verification.constant import OutputRows, lost_outputs
from exporters.verification.engines.result import EngineResult
from exporters.verification.exact.graph import lost_constants
from exporters.verification.layer_outputs import reported_name
from exporters.verification.overflow import overflow_of
from exporters.verification.probes import GraphCall, Probe, probed_case
from exporters.verification.quantized_cache.reference import with_stored_codes
from exporters.verification.reference import (
    PRESENT,
    Expected,
    ExpectedCase,
    expect,
    real_places,
)
from exporters.verification.request import (
    Outcomes,
    VerificationRequest,
    load_exact_forms,
    load_files,
    outcomes,
)
from exporters.verification.result import (
    EMULATED,
    LIFTED,
    NOT_FINITE,
    THE_FILES,
    CodeTies,
    OutputComparison,
    RoundedProduct,
    RoundedWeight,
    Verification,
    VerificationError,
)
from exporters.verification.rounding_bound import roundings_of
from exporters.verification.runtime_outputs import RefusalError, emulates_experts

TOLERANCE = 2e-5
"""The largest difference allowed, relative to the largest output (absolute below 1): a few units in the last place of
float32, for sums in another order."""

ROUNDING = 4
"""The difference allowed as a multiple of the rounding error, the largest of several draws, if that exceeds ``TOLERANCE``."""


def verify(request: VerificationRequest) -> Verification:
    """Compare the graphs in files with a model that has their weights.

    Raises :class:`VerificationError` with all comparisons if one fails.
    """
    import onnxruntime

    with torch.inference_mode():
        runs = _run_cases(request)
        expected = runs.expected
        compare = _Compare(request, expected, roundings_of(request.reference, expected))
        comparisons = tuple(_comparisons(request, compare, runs))
        engines, constant = tuple[EngineResult, ...](), tuple[str, ...]()
        if all(comparison.passed for comparison in comparisons):
            comparisons += tuple(_uncompared(request, comparisons))
            exact, real = _computed(runs.exact), _computed(runs.real)
            local = [*zip(exact, real, strict=True)]
            outputs = (
                OutputRows.of(expected.cases, exact, compare.compared),
                OutputRows.of(expected.cases, real, compare.compared),
            )
            constant = outputs[1].constant(TOLERANCE)
            if request.is_itself:
                comparisons += lost_outputs(*outputs, request.precision.name)
        if request.engines and all(comparison.passed for comparison in comparisons):
            from exporters.verification.engine_claim import prove

            engines = tuple(
                prove(engine, request, expected, runs.padding, local, compare) for engine in request.engines
            )
        overflow = _overflow(request, expected, comparisons)
    wanted_provider = request.target.providers[0]
    result = Verification(
        runs.provider,
        f"onnxruntime {onnxruntime.__version__}",
        request.subject,
        comparisons,
        request.precision.name,
        _ran(request),
        _worst_weight(request, expected),
        None if request.main_only or isinstance(runs.real, RefusalError) else _worst_product(request),
        overflow,
        None if runs.provider == wanted_provider else wanted_provider,
        runs.ties,
        expected.tied,
        engines,
        constant,
    )
    if not result.passed:
        raise VerificationError(result)
    _record(request, runs, comparisons)
    return result


def _ran(request: VerificationRequest) -> str:
    """The description of the files that ran."""
    if any(emulates_experts(path, request.target) for path in request.graphs):
        return EMULATED
    return LIFTED if request.dtype == torch.bfloat16 else THE_FILES


@dataclass(frozen=True)
class _Runs:
    """The outputs of every case: in PyTorch, and in ONNX Runtime in the exact form (``exact``) and as stored (``real``).

    ``calls`` and ``exact_calls`` are the calls of the ``probed`` case; ``calls`` is empty if the files round nothing.
    """

    padding: Padding
    expected: Expected
    exact: Outcomes
    real: Outcomes
    provider: str
    ties: CodeTies | None
    probed: Case | None
    exact_calls: list[GraphCall]
    calls: list[GraphCall]


def _run_cases(request: VerificationRequest) -> _Runs:
    """Run PyTorch while ONNX Runtime loads the exact forms, and then the files."""
    reference, slots = request.reference, [*request.graphs.values()][-1].cache_slots
    padding: Padding = "right" if slots else request.padding
    wanted = [case for case in cases(reference.spec, padding, slots) if case.main or not request.main_only]
    with ThreadPoolExecutor(1) as loader:
        loading = loader.submit(load_exact_forms, request)  # does not hold the interpreter lock
        expected = expect(
            reference,
            wanted,
            request.progress,
            request.written,
            request.take_stored,
            request.layer_outputs,
        )
        reference.drop()  # release PyTorch's memory before ONNX Runtime allocates its own
        probed, exact_calls, calls = _probed(request, expected), list[GraphCall](), list[GraphCall]()
        exact, provider = outcomes(
            loading.result, request, expected, padding, "exact form", probed, exact_calls
        )
        del loading  # and its graphs, before those of the files are loaded
    ties = None
    if request.cache is not None and not isinstance(exact, RefusalError):
        stored = [None if isinstance(outcome, RefusalError) else outcome[PRESENT] for outcome in exact]
        expected, ties = with_stored_codes(reference, expected, request.cache, stored, request.progress)
        reference.drop()
    real = exact
    if request.precision.rounds:
        real, provider = outcomes(
            lambda: load_files(request), request, expected, padding, "the files", probed, calls
        )
    return _Runs(padding, expected, exact, real, provider, ties, probed, exact_calls, calls)


def _probed(request: VerificationRequest, expected: Expected) -> Case | None:
    """The case to record; None if nothing is recorded, or no case is decided in all rows."""
    if request.record is None or expected.tied or request.dtype == torch.bfloat16:  # NumPy has no bfloat16
        return None
    return probed_case(
        expected_case.case for expected_case in expected.cases if expected_case.case.decided is None
    )


def _record(request: VerificationRequest, runs: _Runs, comparisons: Sequence[OutputComparison]) -> None:
    """Record the probed case, unless a router now chooses between experts with equal scores in some rows.

    Another machine might choose differently.
    """
    probed = runs.probed
    if request.record is None or probed is None:
        return
    if any(
        expected_case.case.name == probed.name and expected_case.case.decided is not None
        for expected_case in runs.expected.cases
    ):
        return
    allowed = max(comparison.tolerance for comparison in comparisons if comparison.case == probed.name)
    request.record(Probe(probed.name, runs.calls or runs.exact_calls, runs.exact_calls, allowed))


def _overflow(
    request: VerificationRequest, expected: Expected, comparisons: Iterable[OutputComparison]
) -> str:
    """The layer that exceeds the range of the dtype, if some output is not finite; otherwise empty."""
    if all(comparison.fault != NOT_FINITE for comparison in comparisons):
        return ""
    every = [expected_case.case for expected_case in expected.cases]
    return overflow_of(request.reference.model, every, request.dtype)


def _computed(outcomes: Outcomes) -> list[Mapping[str, Tensor]]:
    """The outputs of every case, if none was refused."""
    assert not isinstance(outcomes, RefusalError)
    return [outcome for outcome in outcomes if not isinstance(outcome, RefusalError)]


def _comparisons(request: VerificationRequest, compare: _Compare, runs: _Runs) -> Iterator[OutputComparison]:
    for refusal in (runs.exact, runs.real):
        if isinstance(refusal, RefusalError):
            yield _refused("loading", "", refusal)
            return
    assert not isinstance(runs.exact, RefusalError)
    assert not isinstance(runs.real, RefusalError)
    if lost := {
        name
        for path, task in request.graphs.items()
        for name in lost_constants(
            onnx.load(path, load_external_data=False), request.unrounded.get(task.name, {})
        )
    }:
        yield _fault("constants", "", f"{request.precision.name} cannot hold {', '.join(sorted(lost))}")
    for expected_case, exact, real in zip(runs.expected.cases, runs.exact, runs.real, strict=True):
        case = expected_case.case
        if isinstance(exact, RefusalError):
            yield _refused(case.name, case.shape, exact)
        elif isinstance(real, RefusalError):
            yield _refused(case.name, case.shape, real)
        else:
            for output in exact:
                yield compare(expected_case, output, exact[output], real[output])


def _uncompared(
    request: VerificationRequest, comparisons: Sequence[OutputComparison]
) -> Iterator[OutputComparison]:
    """A fault for each additional output that no case has compared."""
    compared = {comparison.output for comparison in comparisons}
    for output in request.layer_outputs:
        name = reported_name(request.reference.spec, output)
        if name not in compared:
            yield _fault("all cases", "", f"{name} is in no graph's outputs")


@dataclass(frozen=True)
class _Compare:
    """Compares one output of one case."""

    request: VerificationRequest
    expected: Expected
    roundings: Callable[[], Mapping[str, float]]

    def __call__(
        self, expected_case: ExpectedCase, output: str, exact: Tensor, real: Tensor
    ) -> OutputComparison:
        case, compared = expected_case.case, self.compared(expected_case, output)
        wanted, original = self._full_pass(expected_case, output)
        for got in (exact, real):
            if got.shape != wanted.shape:
                fault = f"shape {tuple(got.shape)}, but {tuple(wanted.shape)} in PyTorch"
                return _faulty(case, output, fault)
            if not bool(torch.isfinite(got).all()):
                return _faulty(case, output, NOT_FINITE)
        scores = output == "logits" and wanted.dim() == 3
        exact, real, wanted, original = (
            values[compared].to(wanted.dtype) for values in (exact, real, wanted, original)
        )
        scale, difference = _largest(wanted), _largest(exact - wanted)
        codes = output == PRESENT and self.request.cache is not None
        tolerance, rounding = TOLERANCE * max(1.0, scale), None
        if difference > tolerance and not codes:  # some models amplify rounding error
            rounding = self.roundings().get(output)
            tolerance = max(tolerance, ROUNDING * (rounding or 0.0))
        rounds = self.request.precision.rounds or self.request.cache is not None
        return OutputComparison(
            case.name,
            case.shape,
            output,
            difference,
            difference / (scale or 1.0),
            tolerance,
            _agreement(real, original) if scores else None,
            difference <= tolerance,
            rounding=rounding,
            moved=_largest(real - original) / (_largest(original) or 1.0) if rounds and not codes else None,
        )

    def compared(self, expected_case: ExpectedCase, output: str) -> Tensor:
        """The index of the values to compare: B, B T, or B C for the last token of each call."""
        real = self._real(expected_case, output)
        if not self._last_only(output):
            return real
        return _last(expected_case.outputs[output], expected_case.case, real)[1]

    def _full_pass(self, expected_case: ExpectedCase, output: str) -> tuple[Tensor, Tensor]:
        """PyTorch's output with the stored and with the original weights, at the tokens that the graphs return."""
        full = expected_case.outputs[output], expected_case.original[output]
        if not self._last_only(output):
            return full
        real = self._real(expected_case, output)
        stored, original = (_last(values, expected_case.case, real)[0] for values in full)
        return stored, original

    def _real(self, expected_case: ExpectedCase, output: str) -> Tensor:
        return real_places(expected_case.case, output, self.expected.per_token, self.request.dtype)

    def _last_only(self, output: str) -> bool:
        return output == "logits" and [*self.request.graphs.values()][-1].last_only


def _agreement(scores: Tensor, original: Tensor) -> float | None:
    """The share of positions with the same highest score; None without positions."""
    agreed = (scores.argmax(-1) == original.argmax(-1)).float()
    return float(agreed.mean()) if agreed.numel() else None


def _largest(values: Tensor) -> float:
    return float(values.abs().max()) if values.numel() else 0.0


def _last(values: Tensor, case: Case, compared: Tensor) -> tuple[Tensor, Tensor]:
    """Return the full pass at the last real token of each call, B C N, and whether each call has one to compare, B C.

    compared: B T, the tokens of the full pass that are compared.
    """
    mask = case.batch.real
    assert mask is not None
    bounds = zip([0, *case.ends], case.ends, strict=False)
    within = [mask[:, start:end].any(1) for start, end in bounds]
    indices = [mask[:, :end].cumsum(1).argmax(1) for end in case.ends]  # of the last 1
    index = torch.stack(indices, 1)[..., None].expand(-1, -1, values.shape[-1])
    return values.gather(1, index), torch.stack(within, 1) & compared.any(1)[:, None]


def _faulty(case: Case, output: str, fault: str) -> OutputComparison:
    return OutputComparison(case.name, case.shape, output, math.inf, math.inf, 0.0, None, False, fault)


def _refused(case: str, shape: str, refusal: RefusalError) -> OutputComparison:
    return _fault(case, shape, f"ONNX Runtime rejects it: {refusal}")


def _fault(case: str, shape: str, fault: str) -> OutputComparison:
    return OutputComparison(case, shape, "all outputs", math.inf, math.inf, 0.0, None, False, fault)


def _worst_weight(request: VerificationRequest, expected: Expected) -> RoundedWeight | None:
    limit = request.precision.weight_error
    rounded = [
        RoundedWeight(name, stored.error, stored.scale, request.limits.get(name, limit))
        for name, stored in expected.weights.items()
    ]
    return max(rounded, key=lambda weight: weight.share, default=None)


def _worst_product(request: VerificationRequest) -> RoundedProduct | None:
    if request.precision.bits is None:
        return None
    from exporters.verification.rounded_products import worst_product

    worst = [worst_product(path, request.target) for path in request.graphs]
    return max(
        (product for product in worst if product is not None), key=lambda product: product.error, default=None
    )
