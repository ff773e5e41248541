"""Real engines, each in the environment that ``make engines`` makes: a few structures, and a sabotage for each."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from exporters.export import export
from exporters.steps.options import ExportOptions
from exporters.verification import engine_claim
from exporters.verification.engines.find import interpreter_of
from exporters.verification.engines.process import EngineProcess
from exporters.verification.engines.replay import replay
from exporters.verification.engines.result import EngineResult
from exporters.verification.engines.table import engine_named
from exporters.verification.request import VerificationRequest
from exporters.verification.result import VerificationError
from specs.model.model import Model
from tests.exporters.reduced_presets import structure
from tests.exporters.verification.engines.sabotage import (
    Change,
    a_mask,
    a_scale,
    an_axis,
    an_unknown_operator,
    change_file,
    sabotaged,
)
from tests.zoo.tiny import BLOCK, bert, gpt2

pytestmark = pytest.mark.engines
RUNTIMES = ("onnxruntime-1.20.1", "onnxruntime-1.24.4")
WIDE = gpt2(
    d_model=128,
    context_length=64,
    decoder={"layers": 1, "block": {**BLOCK, "attention": {"kind": "multi_head", "heads": 2}}},
)
"""Heads of 64, for which there is fused attention in half precision."""

COMPUTING = (*RUNTIMES, "openvino", "wasm", "webgpu")
ROUNDED = (*RUNTIMES, "openvino", "wasm")
SCANNING = ("onnx-reference", "openvino")


Shown = Callable[..., dict[str, EngineResult]]


@pytest.fixture(scope="module")
def shown(tmp_path_factory: pytest.TempPathFactory) -> Shown:
    """Makes an export once, and returns what each of some engines shows of it."""
    known: dict[tuple[str, str], dict[str, EngineResult]] = {}

    def show(spec: Model, engines: Sequence[str], precision: str = "fp32") -> dict[str, EngineResult]:
        key = (spec.name, precision)
        if key not in known:
            known[key] = results_of(
                spec, tmp_path_factory.mktemp("export") / "out", engines=engines, precision=precision
            )
        return known[key]

    return show


def results_of(spec: Model, place: Path, engines: Sequence[str], **options: Any) -> dict[str, EngineResult]:
    """The results of engines, for an export that fails if one of them does."""
    for engine in engines:
        assert interpreter_of(engine_named(engine)) is not None, f"{engine} is missing: run `make engines`"
    try:
        verification = export(spec, place, ExportOptions.of(engines=engines, **options)).verification
    except VerificationError as error:
        verification = error.verification
        if not verification.engines:
            raise
    assert verification is not None
    assert place.exists() == verification.passed
    return {result.engine: result for result in verification.engines}


def assert_computed(result: EngineResult) -> None:
    """An engine computes what PyTorch does, within the tolerances of verification, which are relative to the outputs."""
    assert result.outcome == "computed", str(result)
    assert result.max_abs is not None


@pytest.mark.parametrize("engine", COMPUTING)
@pytest.mark.parametrize("spec", [bert(), gpt2()], ids=lambda spec: spec.name)
def test_an_engine_computes_the_same(spec: Model, engine: str, shown: Shown) -> None:
    assert_computed(shown(spec, COMPUTING)[engine])


@pytest.mark.parametrize("engine", ROUNDED)
@pytest.mark.parametrize("precision", ["fp16", "int8", "int4"])
@pytest.mark.parametrize("preset", ["llama-3.2-1b", "t5-11b"])
def test_an_engine_computes_rounded_files(preset: str, precision: str, engine: str, shown: Shown) -> None:
    assert_computed(shown(structure(preset), ROUNDED, precision)[engine])


@pytest.mark.parametrize("engine", SCANNING)
@pytest.mark.parametrize("preset", ["mamba-1.4b", "mamba2-1.3b", "rwkv7-1.5b", "mixtral-8x22b"])
def test_a_scan_is_one_that_other_engines_take(preset: str, engine: str, shown: Shown) -> None:
    assert_computed(shown(structure(preset), SCANNING)[engine])


@pytest.mark.parametrize("change", [a_scale, a_mask, an_axis])
def test_a_wrong_graph_fails_on_every_engine(
    change: Change, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(engine_claim, "exact_file", lambda *arguments: sabotaged(change, *arguments))
    with pytest.raises(VerificationError) as caught:
        export(gpt2(), tmp_path / "out", ExportOptions(engines=COMPUTING))
    for engine in COMPUTING:
        assert re.search(rf"{engine}.*: failed: .* allowed", str(caught.value)), engine
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("change", [a_mask, an_axis])
def test_a_wrong_file_that_rounds_fails_on_every_engine(
    change: Change, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    places = engine_claim._places

    @contextmanager
    def changed(*arguments: Any, exact: bool, bfloat16: bool) -> Iterator[list[Path]]:
        with places(*arguments, exact=exact, bfloat16=bfloat16) as paths:
            before = [path.read_bytes() for path in paths]
            for path in () if exact else paths:
                change_file(path, change)
            try:
                yield paths
            finally:  # the next engine reads the same files
                for path, graph in zip(paths, before, strict=True):
                    path.write_bytes(graph)

    monkeypatch.setattr(engine_claim, "_places", changed)
    with pytest.raises(VerificationError) as caught:
        export(gpt2(), tmp_path / "out", ExportOptions.of(engines=COMPUTING, precision="int4"))
    for engine in COMPUTING:
        assert re.search(rf"{engine}.*: failed: .* allowed for rounding", str(caught.value)), engine
    assert not (tmp_path / "out").exists()


def test_the_compiler_of_tensorrt_takes_a_model(tmp_path: Path) -> None:
    options = ExportOptions(target="tensorrt", precision="fp16", engines=("tensorrt-rtx",))
    found = export(WIDE, tmp_path / "out", options).verification
    assert found is not None
    (result,) = found.engines
    assert (result.outcome, result.architectures) == ("compiled", ("sm89",))
    _, again = replay(tmp_path / "out", engine_named("tensorrt-rtx"))
    assert again.outcome == "compiled"


def test_the_compiler_of_tensorrt_refuses_what_is_wrong(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    compiled = engine_claim._compiled

    def changed(proof: VerificationRequest, process: EngineProcess) -> EngineResult:
        for path in proof.graphs:
            change_file(path, an_unknown_operator)
        return compiled(proof, process)

    monkeypatch.setattr(engine_claim, "_compiled", changed)
    options = ExportOptions(target="tensorrt", precision="fp16", engines=("tensorrt-rtx",))
    with pytest.raises(VerificationError, match=r"tensorrt-rtx .*: failed at node .*Plugin not found"):
        export(WIDE, tmp_path / "out", options)
    assert not (tmp_path / "out").exists()


def test_an_engine_whose_name_has_its_version_is_named_once(tmp_path: Path) -> None:
    certificate, _ = replay(export(gpt2(), tmp_path / "out").directory, engine_named("onnxruntime-1.24.4"))
    assert certificate.provider == "onnxruntime-1.24.4"
