"""Proof that the written files compute what the PyTorch model computes.

The graph is shown in its exact form, which rounds no activations: every output of every case is compared with the
model's full pass, with the weights as they are stored.  Cached decoding is compared with the full pass too, never with
itself.  The files as they are run in the same cases; how far rounding takes them from the original weights is reported.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

import onnx
import torch
from torch import Tensor

from exporters.cases import Case, cases
from exporters.exact_graph import Constants, lost_constants
from exporters.observed import Loaded, RefusalError, load, load_exact, run
from exporters.overflow import overflow_of
from exporters.precisions import Precision
from exporters.quantized_cache.reference import with_stored_codes
from exporters.quantized_cache.scales import QuantizedCache
from exporters.reference import (
    PRESENT,
    Expected,
    ExpectedCase,
    Reference,
    TakeStored,
    expect,
    real_places,
    roundings_of,
)
from exporters.rounded_products import worst_product
from exporters.targets import Padding, Target
from exporters.verification import (
    LIFTED,
    NOT_FINITE,
    THE_FILES,
    Comparison,
    RoundedProduct,
    RoundedWeight,
    Verification,
    VerificationError,
)
from zoo.tracing.tasks import Task

TOLERANCE = 2e-5
"""The largest difference allowed, relative to the largest output (and absolute below 1): a few units in the last place of
float32, through sums in another order."""

ROUNDING = 8
"""How many times as far as PyTorch's own arithmetic an export may be from a more exact one, where that is more."""

Outcome = Mapping[str, Tensor] | RefusalError
"""What ONNX Runtime gives for a case: its outputs, or why there are none."""


@dataclass(frozen=True)
class Proof:
    """What is verified: the graphs in files, the model that they are compared with, and where they are to run.

    ``unrounded`` are the constants of each task before they were stored in half.  ``written`` waits until the weights are in the file; ``take_stored`` gives the model the weights as they are stored,
    where they are rounded.  ``padding`` is the side on which the last graph takes it.  A model whose wiring a reduced one
    shows in all cases is itself run in the ``main_only``.  ``limits`` are the largest errors of weights
    in blocks of their own, where the precision says another; ``cache`` are the scales of a
    quantized cache.
    """

    graphs: Mapping[Path, Task]
    unrounded: Mapping[str, Constants]
    reference: Reference
    target: Target
    precision: Precision
    subject: str
    progress: Callable[[str], None]
    written: Callable[[], None]
    take_stored: TakeStored | None
    padding: Padding
    main_only: bool
    cache: QuantizedCache | None
    limits: Mapping[str, float] = field(default_factory=dict)

    @property
    def dtype(self) -> torch.dtype:
        """The dtype of activations."""
        return self.precision.dtype_on(self.target)


def verify(proof: Proof) -> Verification:
    """Compare the graphs in files with a model that has its weights.

    Raises :class:`VerificationError` on a breach, with the whole table.
    """
    import onnxruntime

    reference, places = proof.reference, [*proof.graphs.values()][-1].places
    padding: Padding = "right" if places else proof.padding
    every = cases(reference.spec, padding, places)
    wanted = [case for case in every if case.main or not proof.main_only]
    with ThreadPoolExecutor(1) as loader, torch.inference_mode():
        loading = loader.submit(_load_exact, proof)  # leaves the interpreter free: PyTorch runs meanwhile
        expected = expect(reference, wanted, proof.progress, proof.written, proof.take_stored)
        reference.drop()  # PyTorch gives its memory back before ONNX Runtime takes its own
        exact, provider = _outcomes(loading.result, proof, expected, padding, "exact form")
        ties = None
        if proof.cache is not None and not isinstance(exact, RefusalError):
            stored = [None if isinstance(each, RefusalError) else each[PRESENT] for each in exact]
            expected, ties = with_stored_codes(reference, expected, proof.cache, stored, proof.progress)
            reference.drop()
        real = exact
        if proof.precision.rounds:
            real, provider = _outcomes(lambda: _load(proof), proof, expected, padding, "the files")
        comparisons = tuple(_comparisons(proof, expected, exact, real))
        infinite = any(comparison.fault == NOT_FINITE for comparison in comparisons)
        given = [each.case for each in expected.cases]
        overflow = overflow_of(reference.model, given, proof.dtype) if infinite else ""
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
    )
    if not result.passed:
        raise VerificationError(result)
    return result


def _load_exact(proof: Proof) -> list[Loaded]:
    proof.written()
    # Packing all weights anew takes longer than the few calls of the main cases without.
    packed = not proof.main_only
    return [
        load_exact(path, task, proof.target, proof.dtype, proof.unrounded.get(task.name, {}), packed=packed)
        for path, task in proof.graphs.items()
    ]


def _load(proof: Proof) -> list[Loaded]:
    """The files as they are: products in few bits round their inputs only with packed weights."""
    packed = not proof.main_only or proof.precision.bits is not None
    return [load(path, task, proof.target, proof.dtype, packed=packed) for path, task in proof.graphs.items()]


def _outcomes(
    loading: Callable[[], Sequence[Loaded]], proof: Proof, expected: Expected, padding: Padding, form: str
) -> tuple[list[Outcome] | RefusalError, str]:
    """What the graphs give in every case, or why they do not load; and the provider that ran."""
    try:
        loaded = loading()
    except RefusalError as refusal:
        return refusal, "none"
    found: list[Outcome] = []
    for each in expected.cases:
        proof.progress(f"{each.case.name}, ONNX Runtime, {form}")
        try:
            found.append(run(loaded, each.case, expected.per_token, padding))
        except RefusalError as refusal:
            found.append(refusal)
    return found, loaded[0].session.get_providers()[0]


def _comparisons(
    proof: Proof,
    expected: Expected,
    exact: list[Outcome] | RefusalError,
    real: list[Outcome] | RefusalError,
) -> Iterator[Comparison]:
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
    compare = _Compare(proof, expected, roundings_of(proof.reference, expected))
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

    proof: Proof
    expected: Expected
    roundings: Callable[[], Mapping[str, float]]

    def __call__(self, each: ExpectedCase, output: str, exact: Tensor, real: Tensor) -> Comparison:
        case, wanted, before = each.case, each.outputs[output], each.original[output]
        compared = real_places(case, output, self.expected.per_token, self.proof.dtype)
        if output == "logits" and [*self.proof.graphs.values()][-1].last_only:
            before, _ = _last(before, case, compared)
            wanted, compared = _last(wanted, case, compared)
        for got in (exact, real):
            if got.shape != wanted.shape:
                fault = f"it has shape {tuple(got.shape)}, and the model's {tuple(wanted.shape)}"
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
        return Comparison(
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


def _largest(values: Tensor) -> float:
    return float(values.abs().max()) if values.numel() else 0.0


def _last(values: Tensor, case: Case, compared: Tensor) -> tuple[Tensor, Tensor]:
    """The full pass at the last real token of each call, B C N, and B C, whether there is one to compare.

    compared: B T, the tokens of the full pass that are.
    """
    mask = case.batch.mask
    assert mask is not None
    bounds = zip([0, *case.ends], case.ends, strict=False)
    within = [mask[:, start:end].any(1) for start, end in bounds]
    places = [mask[:, :end].cumsum(1).argmax(1) for end in case.ends]  # of the last 1
    index = torch.stack(places, 1)[..., None].expand(-1, -1, values.shape[-1])
    return values.gather(1, index), torch.stack(within, 1) & compared.any(1)[:, None]


def _faulty(case: Case, output: str, fault: str) -> Comparison:
    return Comparison(case.name, case.shape, output, math.inf, math.inf, 0.0, None, False, fault)


def _refused(case: str, shape: str, refusal: RefusalError) -> Comparison:
    return _fault(case, shape, f"ONNX Runtime refuses it: {refusal}")


def _fault(case: str, shape: str, fault: str) -> Comparison:
    return Comparison(case, shape, "all outputs", math.inf, math.inf, 0.0, None, False, fault)


def _worst_weight(proof: Proof, expected: Expected) -> RoundedWeight | None:
    limit = proof.precision.weight_error
    rounded = [
        RoundedWeight(name, stored.error, stored.scale, proof.limits.get(name, limit))
        for name, stored in expected.weights.items()
    ]
    return max(rounded, key=lambda weight: weight.share, default=None)


def _worst_product(proof: Proof) -> RoundedProduct | None:
    if proof.precision.bits is None:
        return None
    found = [worst_product(path, proof.target) for path in proof.graphs]
    return max((each for each in found if each is not None), key=lambda each: each.error, default=None)
