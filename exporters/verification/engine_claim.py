"""The first claim on another engine: the files compute there what the PyTorch model computes.

Cases and expected outputs come from :mod:`exporters.verification.compare`. The exact forms are compared with PyTorch at the same
tolerances; files that round are compared with their outputs in the local ONNX Runtime.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import Protocol

import torch
from torch import Tensor

from exporters.target.profiles import profile
from exporters.target.targets import HALF, Padding
from exporters.verification.engines.engine import Engine
from exporters.verification.engines.find import interpreter_of
from exporters.verification.engines.graphs import EngineGraph, EngineRefusalError, load_graph
from exporters.verification.engines.process import EngineError, EngineProcess, started
from exporters.verification.engines.result import EngineResult
from exporters.verification.exact.bfloat16 import lifted_file
from exporters.verification.exact.graph import exact_file
from exporters.verification.probes import ARITHMETIC, ROUNDING
from exporters.verification.reference import PRESENT, Expected, ExpectedCase
from exporters.verification.request import VerificationRequest
from exporters.verification.result import NOT_FINITE, OutputComparison
from exporters.verification.runtime_outputs import run
from specs.base.errors import reason_of
from zoo.tracing.task import Task

HALF_ROUNDING = 8
"""The tolerance for files in half precision: as a multiple of the rounding error in ONNX Runtime, and in units in the last place
of the largest value. An engine may round every result, while ONNX Runtime's CPU provider computes in float32 between roundings."""

EIGHT_BITS = 1 / 127
"""A step of 8 bits. An engine may round the inputs of products with quantized weights to it even if ONNX Runtime does not here: its
versions fuse different products into operations that round."""

Outputs = Mapping[str, Tensor]


class Compare(Protocol):
    """The comparison of verification."""

    def __call__(
        self, expected_case: ExpectedCase, output: str, exact: Tensor, real: Tensor
    ) -> OutputComparison:
        """Compare one output of one case: the exact form's, and the files'."""
        ...

    def compared(self, expected_case: ExpectedCase, output: str) -> Tensor:
        """The index of the values to compare."""
        ...


class _DifferenceError(Exception):
    """An output that differs from the expected one."""


def prove(
    engine: Engine,
    request: VerificationRequest,
    expected: Expected,
    padding: Padding,
    local: Sequence[tuple[Outputs, Outputs]],
    compare: Compare,
) -> EngineResult:
    """Run every case on an engine, or compile the files.

    ``local`` has the outputs of each case in the local ONNX Runtime: the exact form's, and the files'.
    """
    if engine.shows == "compiles":
        return _shown(engine, request, partial(_compiled, request))
    return _shown(
        engine, request, lambda process: _computed(process, request, expected, padding, local, compare)
    )


def compile_files(request: VerificationRequest) -> tuple[EngineResult, ...]:
    """Compile the files with every engine that only compiles."""
    compilers = [engine for engine in request.engines if engine.shows == "compiles"]
    return tuple(_shown(engine, request, partial(_compiled, request)) for engine in compilers)


def _shown(
    engine: Engine, request: VerificationRequest, run_on: Callable[[EngineProcess], EngineResult]
) -> EngineResult:
    """Start an engine and return its result, or its failure."""
    python, version, node = interpreter_of(engine), "", ""
    if python is None:
        return EngineResult(engine.name, "", "not tried", words="it is not installed here")
    try:
        request.progress(f"start {engine.name}")
        with started(engine, python) as process:
            version = process.version
            return run_on(process)
    except EngineError as error:
        node, words = error.node, error.words
    except EngineRefusalError as refusal:
        node, words = refusal.node, str(refusal)
    except _DifferenceError as difference:
        words = str(difference)
    return EngineResult(engine.name, version, "failed", node=node, words=words)


def _compiled(request: VerificationRequest, process: EngineProcess) -> EngineResult:
    engine = process.engine
    architectures: list[str] = []
    for path, task in request.graphs.items():
        request.progress(f"{path.name}, {engine.name}")
        inputs = profile(request.reference.spec, task)
        with _places(request, {path: task}, exact=False, bfloat16=engine.bfloat16) as places:
            answer = process.ask(do="compile", path=str(places[0].absolute()), options={"inputs": inputs})
        architectures = [str(name) for name in answer.get("architectures", ())]
    return EngineResult(engine.name, process.version, "compiled", architectures=tuple(architectures))


def _computed(
    process: EngineProcess,
    request: VerificationRequest,
    expected: Expected,
    padding: Padding,
    local: Sequence[tuple[Outputs, Outputs]],
    compare: Compare,
) -> EngineResult:
    engine, rounds = process.engine, request.precision.rounds
    untried = []
    if request.dtype == torch.float16 and "float16" in process.lacks:
        rounds = False
        untried.append(
            "the files as stored were not run, as it has no float16 on this machine; their exact form was"
        )
    exact: list[Outputs] | None = None
    if engine.exact_forms or not rounds:
        exact = _outcomes(process, request, expected, padding, exact=True)
    real = _outcomes(process, request, expected, padding, exact=False) if rounds else exact
    assert real is not None
    largest, rounded = 0.0, 0.0
    roundings = _roundings(request, expected, local, compare) if rounds else {}
    for index, expected_case in enumerate(expected.cases):
        for output in local[index][0]:
            if exact is not None:
                comparison = compare(expected_case, output, exact[index][output], real[index][output])
                if not comparison.passed:
                    raise _DifferenceError(_words(comparison))
                largest = max(largest, comparison.max_abs)
            if output in roundings:
                compared = compare.compared(expected_case, output)
                where = f"{expected_case.case.name}, {output}"
                got, local_output = real[index][output], local[index][1][output]
                moved = _moved(where, compared, local_output, got, request.dtype, roundings[output])
                rounded = max(rounded, moved)
    return EngineResult(
        engine.name,
        process.version,
        "computed",
        cases=len(expected.cases),
        max_abs=largest if exact is not None else rounded,
        rounded=rounded if rounds else None,
        untried=(*untried, *process.asides),
    )


def _roundings(
    request: VerificationRequest,
    expected: Expected,
    local: Sequence[tuple[Outputs, Outputs]],
    compare: Compare,
) -> dict[str, float]:
    """The difference that rounding explains, by output, relative to its largest value: the largest of all cases, because another
    rounding may choose other experts in any of them."""
    factor = HALF_ROUNDING if request.dtype in HALF else ROUNDING
    least = 0.0 if request.precision.bits is None else EIGHT_BITS
    roundings = dict[str, float]()
    for expected_case, (ideal, got) in zip(expected.cases, local, strict=True):
        for output in got:
            if output == PRESENT and request.cache is not None:
                continue
            compared = compare.compared(expected_case, output)
            exact, real = (values[output][compared].double() for values in (ideal, got))
            scale = float(real.abs().max()) if real.numel() else 0.0
            moved = float((real - exact).abs().max()) / scale if scale else 0.0
            roundings[output] = max(roundings.get(output, least), factor * moved)
    return roundings


def _outcomes(
    process: EngineProcess, request: VerificationRequest, expected: Expected, padding: Padding, *, exact: bool
) -> list[Outputs]:
    """The outputs of every case in the exact forms or in the files."""
    form = "exact form" if exact else "the files"
    with _places(request, request.graphs, exact=exact, bfloat16=False) as paths:
        wide = exact or request.dtype == torch.bfloat16
        graphs: list[EngineGraph] = [
            load_graph(process, path, task, wide=wide, exact=exact)
            for path, task in zip(paths, request.graphs.values(), strict=True)
        ]
    outcomes: list[Outputs] = []
    for expected_case in expected.cases:
        request.progress(f"{expected_case.case.name}, {process.engine.name}, {form}")
        try:
            outcomes.append(run(graphs, expected_case.case, expected.per_token, padding))
        except (RuntimeError, IndexError) as error:
            words = reason_of(error)
            raise _DifferenceError(
                f"{expected_case.case.name}: outputs of its calls do not fit together: {words}"
            ) from None
    return outcomes


@contextmanager
def _places(
    request: VerificationRequest, graphs: Mapping[Path, Task], *, exact: bool, bfloat16: bool
) -> Iterator[list[Path]]:
    """Yield the files to load: the graphs themselves, or temporary ones next to them."""
    half = None if request.dtype == torch.float32 else request.dtype
    with ExitStack() as stack:
        places = []
        for path, task in graphs.items():
            if exact:
                constants = request.unrounded.get(task.name, {})
                places.append(stack.enter_context(exact_file(path, half, constants)))
            elif request.dtype == torch.bfloat16 and not bfloat16:
                places.append(stack.enter_context(lifted_file(path)))
            else:
                places.append(path)
        yield places


def _moved(
    where: str, compared: Tensor, local: Tensor, got: Tensor, dtype: torch.dtype, rounding: float
) -> float:
    """The largest difference between the files' output on the engine and in ONNX Runtime.

    Raises :class:`_DifferenceError` if rounding does not explain it.
    """
    if got.shape != local.shape:
        raise _DifferenceError(f"{where}: shape {tuple(got.shape)}, but {tuple(local.shape)} in ONNX Runtime")
    kept = [values[compared].double() for values in (local, got)]
    if not bool(torch.isfinite(kept[1]).all()):
        raise _DifferenceError(f"{where}: {NOT_FINITE}")
    scale, difference = (
        float(values.abs().max()) if values.numel() else 0.0 for values in (kept[0], kept[1] - kept[0])
    )
    least = HALF_ROUNDING * torch.finfo(dtype).eps / 2 if dtype in HALF else ARITHMETIC
    allowed = least * max(1.0, scale) + rounding * scale
    if difference > allowed:
        raise _DifferenceError(
            f"{where}: off by {difference:.2e} from ONNX Runtime, {allowed:.1e} allowed for rounding"
        )
    return difference


def _words(comparison: OutputComparison) -> str:
    difference = comparison.fault or f"off by {comparison.max_abs:.2e}, {comparison.tolerance:.1e} allowed"
    return f"{comparison.case}, {comparison.output}: {difference}"
