"""The first claim on an engine: that the files compute there what the PyTorch model computes.

The cases and the expected outputs are those of :mod:`exporters.verify`. The exact forms are compared with PyTorch at the same
tolerances; the files themselves, where they round, with what ONNX Runtime computes of them here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import Protocol

import torch
from torch import Tensor

from exporters.bf16_emulation import lifted_file
from exporters.engines.engine import Engine
from exporters.engines.find import interpreter_of
from exporters.engines.graphs import EngineGraph, EngineRefusalError, load_graph
from exporters.engines.process import EngineError, EngineProcess, started
from exporters.engines.result import EngineResult
from exporters.exact_graph import exact_file
from exporters.ort_outputs import run
from exporters.probes import ARITHMETIC, ROUNDING
from exporters.profiles import profile
from exporters.proof import Proof
from exporters.reference import PRESENT, Expected, ExpectedCase
from exporters.targets import HALF, Padding
from exporters.verification import NOT_FINITE, OutputComparison
from specs.errors import reason_of
from zoo.tracing.task import Task

HALF_ROUNDING = 8
"""The tolerance for files in half precision: as a multiple of the error that rounding causes in ONNX Runtime, whose CPU provider
computes in float32 between roundings, and in units in the last place of the largest value. An engine may round every result."""

EIGHT_BITS = 1 / 127
"""A step of 8 bits, to which an engine may round the inputs of products with quantized weights where ONNX Runtime does not here:
its versions fuse different products into operations that do."""

Outputs = Mapping[str, Tensor]


class Compare(Protocol):
    """The comparison of verification."""

    def __call__(self, each: ExpectedCase, output: str, exact: Tensor, real: Tensor) -> OutputComparison:
        """Compare one output of one case: of the exact forms, and of the files."""
        ...

    def places(self, each: ExpectedCase, output: str) -> Tensor:
        """An index of the values that are compared."""
        ...


class _DifferenceError(Exception):
    """An output that is not what it must be."""


def prove(
    engine: Engine,
    proof: Proof,
    expected: Expected,
    padding: Padding,
    here: Sequence[tuple[Outputs, Outputs]],
    compare: Compare,
) -> EngineResult:
    """Run every case on an engine, or compile the files; ``here`` are ONNX Runtime's outputs of each case: of the exact forms, and
    of the files."""
    if engine.shows == "compiles":
        return _shown(engine, proof, partial(_compiled, proof))
    return _shown(engine, proof, lambda process: _computed(process, proof, expected, padding, here, compare))


def compile_files(proof: Proof) -> tuple[EngineResult, ...]:
    """Compile the files with every engine that only compiles."""
    compilers = [engine for engine in proof.engines if engine.shows == "compiles"]
    return tuple(_shown(engine, proof, partial(_compiled, proof)) for engine in compilers)


def _shown(engine: Engine, proof: Proof, run_on: Callable[[EngineProcess], EngineResult]) -> EngineResult:
    """What an engine shows once it is started, or its failure."""
    python, version, at = interpreter_of(engine), "", ""
    if python is None:
        return EngineResult(engine.name, "", "not tried", words="it is not installed here")
    try:
        proof.progress(f"start {engine.name}")
        with started(engine, python) as process:
            version = process.version
            return run_on(process)
    except EngineError as error:
        at, words = error.node, error.words
    except EngineRefusalError as refusal:
        at, words = refusal.node, str(refusal)
    except _DifferenceError as difference:
        words = str(difference)
    return EngineResult(engine.name, version, "failed", node=at, words=words)


def _compiled(proof: Proof, process: EngineProcess) -> EngineResult:
    engine = process.engine
    architectures: list[str] = []
    for path, task in proof.graphs.items():
        proof.progress(f"{path.name}, {engine.name}")
        inputs = profile(proof.reference.spec, task)
        with _places(proof, {path: task}, exact=False, bfloat16=engine.bfloat16) as places:
            answer = process.ask(do="compile", path=str(places[0].absolute()), options={"inputs": inputs})
        architectures = [str(name) for name in answer.get("architectures", ())]
    return EngineResult(engine.name, process.version, "compiled", architectures=tuple(architectures))


def _computed(
    process: EngineProcess,
    proof: Proof,
    expected: Expected,
    padding: Padding,
    here: Sequence[tuple[Outputs, Outputs]],
    compare: Compare,
) -> EngineResult:
    engine, rounds = process.engine, proof.precision.rounds
    untried = []
    if proof.dtype == torch.float16 and "float16" in process.lacks:
        rounds = False
        untried.append(
            "the files as stored were not run, as it has no float16 on this machine; their exact form was"
        )
    exact: list[Outputs] | None = None
    if engine.exact_forms or not rounds:
        exact = _outcomes(process, proof, expected, padding, exact=True)
    real = _outcomes(process, proof, expected, padding, exact=False) if rounds else exact
    assert real is not None
    largest, rounded = 0.0, 0.0
    roundings = _roundings(proof, expected, here, compare) if rounds else {}
    for place, each in enumerate(expected.cases):
        for output in here[place][0]:
            if exact is not None:
                found = compare(each, output, exact[place][output], real[place][output])
                if not found.passed:
                    raise _DifferenceError(_words(found))
                largest = max(largest, found.max_abs)
            if output in roundings:
                places = compare.places(each, output)
                where = f"{each.case.name}, {output}"
                got, found_here = real[place][output], here[place][1][output]
                rounded = max(rounded, _moved(where, places, found_here, got, proof.dtype, roundings[output]))
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
    proof: Proof, expected: Expected, here: Sequence[tuple[Outputs, Outputs]], compare: Compare
) -> dict[str, float]:
    """What rounding explains of each output, relative to its largest value: the most in any case, as another rounding may choose
    another expert in any of them."""
    factor = HALF_ROUNDING if proof.dtype in HALF else ROUNDING
    least = 0.0 if proof.precision.bits is None else EIGHT_BITS
    found = dict[str, float]()
    for each, (ideal, got) in zip(expected.cases, here, strict=True):
        for output in got:
            if output == PRESENT and proof.cache is not None:
                continue
            places = compare.places(each, output)
            exact, real = (values[output][places].double() for values in (ideal, got))
            scale = float(real.abs().max()) if real.numel() else 0.0
            moved = float((real - exact).abs().max()) / scale if scale else 0.0
            found[output] = max(found.get(output, least), factor * moved)
    return found


def _outcomes(
    process: EngineProcess, proof: Proof, expected: Expected, padding: Padding, *, exact: bool
) -> list[Outputs]:
    """The outputs of every case, of the exact forms or of the files."""
    form = "exact form" if exact else "the files"
    with _places(proof, proof.graphs, exact=exact, bfloat16=False) as places:
        wide = exact or proof.dtype == torch.bfloat16
        graphs: list[EngineGraph] = [
            load_graph(process, place, task, wide=wide, exact=exact)
            for place, task in zip(places, proof.graphs.values(), strict=True)
        ]
    found: list[Outputs] = []
    for each in expected.cases:
        proof.progress(f"{each.case.name}, {process.engine.name}, {form}")
        try:
            found.append(run(graphs, each.case, expected.per_token, padding))
        except (RuntimeError, IndexError) as error:
            words = reason_of(error)
            raise _DifferenceError(
                f"{each.case.name}: outputs of its calls do not fit together: {words}"
            ) from None
    return found


@contextmanager
def _places(
    proof: Proof, graphs: Mapping[Path, Task], *, exact: bool, bfloat16: bool
) -> Iterator[list[Path]]:
    """Yield the files to load: the graphs themselves, or temporary ones beside them."""
    half = None if proof.dtype == torch.float32 else proof.dtype
    with ExitStack() as stack:
        places = []
        for path, task in graphs.items():
            if exact:
                constants = proof.unrounded.get(task.name, {})
                places.append(stack.enter_context(exact_file(path, half, constants)))
            elif proof.dtype == torch.bfloat16 and not bfloat16:
                places.append(stack.enter_context(lifted_file(path)))
            else:
                places.append(path)
        yield places


def _moved(
    where: str, places: Tensor, here: Tensor, got: Tensor, dtype: torch.dtype, rounding: float
) -> float:
    """The largest difference of the files' output from ONNX Runtime's.

    Raises :class:`_DifferenceError` where rounding does not explain it.
    """
    if got.shape != here.shape:
        raise _DifferenceError(f"{where}: shape {tuple(got.shape)}, but {tuple(here.shape)} in ONNX Runtime")
    kept = [values[places].double() for values in (here, got)]
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


def _words(found: OutputComparison) -> str:
    difference = found.fault or f"off by {found.max_abs:.2e}, {found.tolerance:.1e} allowed"
    return f"{found.case}, {found.output}: {difference}"
