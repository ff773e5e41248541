"""Verification that the written files compute what the PyTorch model computes.

The graph runs in its exact form, which rounds no activations: every output of every case is compared with the model's
full pass, with the stored weights. Cached decoding is compared with the full pass too, never with itself. The files
themselves run in the same cases; their distance from the original weights is reported.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import onnx
import torch
from torch import Tensor

from exporters.target.targets import Padding
from exporters.verification.cases import Case, cases
from exporters.verification.engines.prove import prove
from exporters.verification.engines.result import EngineResult
from exporters.verification.exact.graph import lost_constants
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
    RunOutcome,
    VerificationRequest,
    load_exact_forms,
    load_files,
    outcomes,
)
from exporters.verification.result import (
    LIFTED,
    NOT_FINITE,
    THE_FILES,
    OutputComparison,
    RoundedProduct,
    RoundedWeight,
    Verification,
    VerificationError,
)
from exporters.verification.rounded_products import worst_product
from exporters.verification.rounding_bound import roundings_of
from exporters.verification.runtime_outputs import RefusalError

TOLERANCE = 2e-5
"""The largest difference allowed, relative to the largest output (absolute below 1): a few units in the last place of
float32, for sums in another order."""

ROUNDING = 4
"""The difference allowed as a multiple of the rounding error, the largest of several draws, where that exceeds ``TOLERANCE``."""


def verify(proof: VerificationRequest) -> Verification:
    """Compare the graphs in files with a model that has their weights.

    Raises :class:`VerificationError` with all comparisons where one fails.
    """
    import onnxruntime

    reference, slots = proof.reference, [*proof.graphs.values()][-1].cache_slots
    padding: Padding = "right" if slots else proof.padding
    every = cases(reference.spec, padding, slots)
    wanted = [case for case in every if case.main or not proof.main_only]
    with ThreadPoolExecutor(1) as loader, torch.inference_mode():
        loading = loader.submit(
            load_exact_forms, proof
        )  # leaves the interpreter free: PyTorch runs meanwhile
        expected = expect(reference, wanted, proof.progress, proof.written, proof.take_stored)
        reference.drop()  # release PyTorch's memory before ONNX Runtime allocates its own
        recorded = proof.record is not None and not expected.tied
        recorded &= proof.dtype != torch.bfloat16  # NumPy has no bfloat16
        clear = [each.case for each in expected.cases if each.case.decided is None]
        probed = probed_case(clear) if recorded else None
        exact_calls, calls = list[GraphCall](), list[GraphCall]()
        exact, provider = outcomes(
            loading.result, proof, expected, padding, "exact form", probed, exact_calls
        )
        ties = None
        if proof.cache is not None and not isinstance(exact, RefusalError):
            stored = [None if isinstance(each, RefusalError) else each[PRESENT] for each in exact]
            expected, ties = with_stored_codes(reference, expected, proof.cache, stored, proof.progress)
            reference.drop()
        real = exact
        if proof.precision.rounds:
            real, provider = outcomes(
                lambda: load_files(proof), proof, expected, padding, "the files", probed, calls
            )
        compare = _Compare(proof, expected, roundings_of(proof.reference, expected))
        comparisons = tuple(_comparisons(proof, expected, compare, exact, real))
        infinite = any(comparison.fault == NOT_FINITE for comparison in comparisons)
        given = [each.case for each in expected.cases]
        overflow = overflow_of(reference.model, given, proof.dtype) if infinite else ""
        engines = tuple[EngineResult, ...]()
        if all(comparison.passed for comparison in comparisons):
            here = [*zip(_computed(exact), _computed(real), strict=True)]
            engines = tuple(prove(each, proof, expected, padding, here, compare) for each in proof.engines)
    wanted_provider = proof.target.providers[0]
    result = Verification(
        provider,
        f"onnxruntime {onnxruntime.__version__}",
        proof.subject,
        comparisons,
        proof.precision.name,
        LIFTED if proof.dtype == torch.bfloat16 else THE_FILES,
        _worst_weight(proof, expected),
        None if proof.main_only or isinstance(real, RefusalError) else _worst_product(proof),
        overflow,
        None if provider == wanted_provider else wanted_provider,
        ties,
        expected.tied,
        engines,
    )
    if not result.passed:
        raise VerificationError(result)
    if proof.record is not None and probed is not None and not _undecided(probed, expected):
        allowed = max(each.tolerance for each in comparisons if each.case == probed.name)
        proof.record(Probe(probed.name, calls or exact_calls, exact_calls, allowed))
    return result


def _computed(found: list[RunOutcome] | RefusalError) -> list[Mapping[str, Tensor]]:
    """The outputs of every case, where none was refused."""
    assert not isinstance(found, RefusalError)
    return [each for each in found if not isinstance(each, RefusalError)]


def _undecided(case: Case, expected: Expected) -> bool:
    """Return whether a router chooses between experts with equal scores in some rows: another machine may choose
    differently."""
    return any(each.case.decided is not None for each in expected.cases if each.case.name == case.name)


def _comparisons(
    proof: VerificationRequest,
    expected: Expected,
    compare: _Compare,
    exact: list[RunOutcome] | RefusalError,
    real: list[RunOutcome] | RefusalError,
) -> Iterator[OutputComparison]:
    for refusal in (exact, real):
        if isinstance(refusal, RefusalError):
            yield _refused("loading", "", refusal)
            return
    assert not isinstance(exact, RefusalError)
    assert not isinstance(real, RefusalError)
    if lost := [
        name
        for path, task in proof.graphs.items()
        for name in lost_constants(
            onnx.load(path, load_external_data=False), proof.unrounded.get(task.name, {})
        )
    ]:
        yield _fault("constants", "", f"{proof.precision.name} cannot hold {', '.join(sorted(set(lost)))}")
    for each, ideal, got in zip(expected.cases, exact, real, strict=True):
        for outcome in (ideal, got):
            if isinstance(outcome, RefusalError):
                yield _refused(each.case.name, each.case.shape, outcome)
                break
        else:
            assert not isinstance(ideal, RefusalError)
            assert not isinstance(got, RefusalError)
            for output in ideal:
                yield compare(each, output, ideal[output], got[output])


@dataclass(frozen=True)
class _Compare:
    """Compares one output of one case."""

    proof: VerificationRequest
    expected: Expected
    roundings: Callable[[], Mapping[str, float]]

    def __call__(self, each: ExpectedCase, output: str, exact: Tensor, real: Tensor) -> OutputComparison:
        case, wanted, before = each.case, each.outputs[output], each.original[output]
        compared = self.places(each, output)
        if self._last_only(output):
            every = real_places(case, output, self.expected.per_token, self.proof.dtype)
            before, _ = _last(before, case, every)
            wanted, _ = _last(wanted, case, every)
        for got in (exact, real):
            if got.shape != wanted.shape:
                fault = f"shape {tuple(got.shape)}, but {tuple(wanted.shape)} in PyTorch"
                return _faulty(case, output, fault)
            if not bool(torch.isfinite(got).all()):
                return _faulty(case, output, NOT_FINITE)
        scores = output == "logits" and wanted.dim() == 3
        exact, real, wanted, before = (
            values[compared].to(wanted.dtype) for values in (exact, real, wanted, before)
        )
        scale, difference = _largest(wanted), _largest(exact - wanted)
        tolerance, rounding = TOLERANCE * max(1.0, scale), None
        codes = output == PRESENT and self.proof.cache is not None
        if difference > tolerance and not codes:  # some models amplify rounding error
            rounding = self.roundings().get(output)
            tolerance = max(tolerance, ROUNDING * (rounding or 0.0))
        agreed = (real.argmax(-1) == before.argmax(-1)).float() if scores else torch.empty(0)
        return OutputComparison(
            case.name,
            case.shape,
            output,
            difference,
            difference / (scale or 1.0),
            tolerance,
            float(agreed.mean()) if agreed.numel() else None,
            difference <= tolerance,
            rounding=rounding,
            moved=_largest(real - before) / (_largest(before) or 1.0)
            if (self.proof.precision.rounds or self.proof.cache is not None) and not codes
            else None,
        )

    def places(self, each: ExpectedCase, output: str) -> Tensor:
        """An index of the values that are compared: B, B T, or B C for the last token of each call."""
        every = real_places(each.case, output, self.expected.per_token, self.proof.dtype)
        return _last(each.outputs[output], each.case, every)[1] if self._last_only(output) else every

    def _last_only(self, output: str) -> bool:
        return output == "logits" and [*self.proof.graphs.values()][-1].last_only


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


def _worst_weight(proof: VerificationRequest, expected: Expected) -> RoundedWeight | None:
    limit = proof.precision.weight_error
    rounded = [
        RoundedWeight(name, stored.error, stored.scale, proof.limits.get(name, limit))
        for name, stored in expected.weights.items()
    ]
    return max(rounded, key=lambda weight: weight.share, default=None)


def _worst_product(proof: VerificationRequest) -> RoundedProduct | None:
    if proof.precision.bits is None:
        return None
    found = [worst_product(path, proof.target) for path in proof.graphs]
    return max((each for each in found if each is not None), key=lambda each: each.error, default=None)
