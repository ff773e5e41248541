"""Engines: what is asked for is found or refused, and what an engine shows is recorded."""

from __future__ import annotations

import importlib
import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
import torch

from exporters.exported.verify_export import verify_export
from exporters.steps.options import ExportOptions
from exporters.verification import engine_claim
from exporters.verification.engines.engine import RUNNERS
from exporters.verification.engines.find import VARIABLE, engines_here, installation, interpreter_of
from exporters.verification.engines.graphs import EngineGraph
from exporters.verification.engines.replay import replay
from exporters.verification.engines.result import EngineResult
from exporters.verification.engines.table import ENGINES, engine_named
from exporters.verification.result import VerificationError
from exporters.verification.runtime_outputs import RefusalError
from specs.base.errors import UserError
from specs.model.model import Model
from tests.engines.test_engines import COMPUTING
from tests.exporters.models import verified, written
from tests.exporters.verification.engines.sabotage import (
    Change,
    a_mask,
    a_scale,
    an_axis,
    an_unknown_operator,
    sabotaged,
)
from tests.thinned import one_in
from tests.zoo.tiny import bert, gpt2, t5

REFERENCE = "onnx-reference"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            {"engines": ("openvine",)},
            "must be the name of an engine.\n  value: 'openvine'\n  Did you mean 'openvino'?",
        ),
        ({"engines": ("openvino",), "target": "cpu"}, "openvino takes only graphs for target portable"),
        ({"engines": (REFERENCE,), "verify": False}, "needs verified files"),
    ],
)
def test_engines_that_do_not_apply_are_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(UserError) as caught:
        ExportOptions(**options)
    assert message in str(caught.value)


def test_a_missing_engine_is_refused_before_anything_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(VARIABLE, str(tmp_path))
    with pytest.raises(UserError) as caught:
        written(bert(), tmp_path / "out", engines=("onnxruntime-1.2.3",))
    lines = str(caught.value).splitlines()
    assert lines[0] == "engines onnxruntime-1.2.3 is not installed on this machine."
    assert lines[-2].endswith(f"-m venv {tmp_path}/onnxruntime-1.2.3")
    assert lines[-1].endswith("python -m pip install onnxruntime==1.2.3 numpy")
    assert not (tmp_path / "out").exists()


def test_an_engine_is_found_in_its_own_environment_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(VARIABLE, str(tmp_path))
    here = interpreter_of(ENGINES[REFERENCE])
    python = tmp_path / REFERENCE / "bin" / "python"
    python.parent.mkdir(parents=True)
    python.touch()
    (tmp_path / "onnxruntime-1.20.1").mkdir()
    assert here != python
    assert interpreter_of(ENGINES[REFERENCE]) == python
    assert engines_here()[-1].name == "onnxruntime-1.20.1"
    assert engines_here()[-1].packages[0] == "onnxruntime==1.20.1"


def test_installation_quotes_its_paths(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, "/a place")
    assert "'/a place/openvino'" in installation(engine_named("openvino"))[0]


def test_installation_quotes_its_packages() -> None:
    """A shell would write to a file named after the version otherwise."""
    assert "'onnxruntime-ep-webgpu>=0.4'" in installation(engine_named("webgpu"))[1]


@pytest.mark.slow
@pytest.mark.parametrize("spec", [t5(), bert(), gpt2()], ids=lambda spec: spec.name)
def test_the_reference_evaluator_computes_the_same(spec: Model, tmp_path: Path) -> None:
    found = verified(spec, tmp_path / "out", engines=(REFERENCE,))
    (engine,) = found.verification.engines
    assert (engine.outcome, engine.version) == ("computed", onnx.__version__)
    assert engine.cases > 5
    assert engine.max_abs is not None
    assert 0 < engine.max_abs < 2e-5
    build = json.loads((tmp_path / "out" / "build.json").read_bytes())
    assert build["verification"]["engines"][0]["engine"] == REFERENCE
    certificate, again = replay(tmp_path / "out", ENGINES[REFERENCE])
    assert (again.outcome, again.cases) == ("computed", 1)
    assert certificate.provider == f"{REFERENCE} {onnx.__version__}"


@pytest.mark.slow
def test_rounded_files_are_compared_as_they_are(tmp_path: Path) -> None:
    found = verified(bert(), tmp_path / "out", engines=(REFERENCE,), precision="fp16")
    (engine,) = found.verification.engines
    assert engine.rounded is not None
    assert engine.max_abs is not None
    assert engine.max_abs < 2e-5
    assert engine.rounded < 0.05


@pytest.mark.slow
def test_an_export_is_proven_on_an_engine_later(tmp_path: Path) -> None:
    written(gpt2(), tmp_path / "out")
    found = verify_export(tmp_path / "out", engines=(REFERENCE,))
    assert found.verification is not None
    assert found.verification.engines[0].outcome == "computed"
    assert f"{REFERENCE} {onnx.__version__}: computed" in str(found)


@pytest.mark.parametrize(
    ("dtype", "bits", "moved", "explained"),
    [
        (torch.float32, None, [0.0, 0.5], 2 * 0.5),  # a token of one case went to another expert
        (torch.float16, None, [0.25, 0.0], 8 * 0.25),
        (torch.float32, 4, [0.0, 0.0], 1 / 127),  # another version rounds the inputs of another product
        (torch.float32, 4, [0.25, 0.0], 2 * 0.25),
    ],
)
def test_rounding_explains_as_much_in_every_case_as_in_any(
    dtype: torch.dtype, bits: int | None, moved: list[float], explained: float
) -> None:
    proof: Any = SimpleNamespace(dtype=dtype, precision=SimpleNamespace(bits=bits), cache=None)
    expected: Any = SimpleNamespace(cases=["one", "two"])
    compare: Any = SimpleNamespace(compared=lambda each, output: slice(None))
    here = [({"logits": torch.tensor([4.0, 0.0])}, {"logits": torch.tensor([4.0, 4.0 * by])}) for by in moved]
    found = engine_claim._roundings(proof, expected, here, compare)
    assert found == {"logits": pytest.approx(explained)}
    exact = torch.tensor([4.0, 0.0])
    engine_claim._moved("x", slice(None), exact, exact + 4 * explained, dtype, found["logits"])  # type: ignore[arg-type]
    with pytest.raises(engine_claim._DifferenceError, match="allowed for rounding"):
        engine_claim._moved("x", slice(None), exact, exact + 4.1 * explained + 0.04, dtype, found["logits"])  # type: ignore[arg-type]


def test_a_changed_file_is_not_computed(tmp_path: Path) -> None:
    written(bert(), tmp_path / "out")
    with (tmp_path / "out" / "model.onnx.data").open("r+b") as file:
        file.write(b"\xff")
    certificate, found = replay(tmp_path / "out", ENGINES[REFERENCE])
    assert found.outcome == "failed"
    assert "other contents" in found.words
    assert not certificate.passed


INSTALLED = {REFERENCE: onnx.__version__, "onnxruntime": onnxruntime.__version__}


@one_in(20)
@pytest.mark.parametrize("engine", INSTALLED)
@pytest.mark.parametrize("change", [a_scale, a_mask, an_axis])
def test_a_graph_that_is_wrong_on_an_engine_fails_the_export(
    change: Change, engine: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(engine_claim, "exact_file", lambda *arguments: sabotaged(change, *arguments))
    with pytest.raises(VerificationError, match=f"{engine} {INSTALLED[engine]}: failed: .* allowed"):
        written(gpt2(), tmp_path / "out", engines=(engine,))
    assert not (tmp_path / "out").exists()


def test_every_engine_is_shown_to_see_a_wrong_graph() -> None:
    """Here, in ``tests/engines``, and in ``tests/gpu``."""
    computing = {name for name in COMPUTING if name in ENGINES} | {*INSTALLED, "cuda"}
    assert {engine.name for engine in ENGINES.values() if engine.shows == "computes"} == computing
    assert {engine.name for engine in ENGINES.values() if engine.shows == "compiles"} == {"tensorrt-rtx"}


def test_a_refused_graph_fails_the_export_in_the_engines_own_words(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        engine_claim, "exact_file", lambda *arguments: sabotaged(an_unknown_operator, *arguments)
    )
    with pytest.raises(VerificationError, match=r"onnxruntime .*: failed.*Unheard"):
        written(bert(), tmp_path / "out", engines=("onnxruntime",))
    assert not (tmp_path / "out").exists()


def test_the_first_failure_of_two_sets_of_files_is_kept() -> None:
    one = EngineResult("a", "1", "computed", cases=2, max_abs=1e-6)
    two = EngineResult("a", "1", "computed", cases=3, max_abs=1e-5, rounded=0.1)
    failed = EngineResult("a", "1", "failed", node="n", words="no")
    assert one.followed_by(two) == EngineResult("a", "1", "computed", cases=5, max_abs=1e-5, rounded=0.1)
    assert one.followed_by(failed) == failed == failed.followed_by(one)
    assert str(failed) == "a 1: failed at node n: no"


class _Faulty:
    """A process that returns what it is given."""

    def __init__(self, **outputs: np.ndarray[Any, Any]) -> None:
        self.outputs = outputs

    def run(self, graph: str, feeds: object) -> dict[str, np.ndarray[Any, Any]]:
        return self.outputs


@pytest.mark.parametrize(
    ("outputs", "words"),
    [
        ({}, "no output y"),
        ({"y": np.zeros(3)}, r"y has shape \(3,\), and the graph states \? x 4"),
        ({"y": np.zeros((2, 3))}, r"y has shape \(2, 3\), and the graph states \? x 4"),
    ],
)
def test_outputs_have_the_shapes_that_the_graph_states(
    outputs: dict[str, np.ndarray[Any, Any]], words: str
) -> None:
    task: Any = SimpleNamespace(name="graph", inputs=())
    process: Any = _Faulty(**outputs)
    with pytest.raises(RefusalError, match=words):
        EngineGraph(process, task, {"y": (None, 4)})({})


def test_one_engine_may_be_named_without_a_list() -> None:
    assert ExportOptions.of(engines="onnxruntime").engines == ("onnxruntime",)
    assert ExportOptions.of(engines=["onnxruntime", "onnxruntime"]).engines == ("onnxruntime",)


def test_what_did_not_run_on_an_engine_is_said() -> None:
    one = EngineResult("a", "1", "computed", cases=2, max_abs=1e-6, untried=("no float16",))
    both = one.followed_by(
        EngineResult("a", "1", "computed", cases=1, max_abs=1e-6, untried=("no float16", "b"))
    )
    assert both.untried == ("no float16", "b")
    assert str(one) == "a 1: computed, largest difference 1.0e-06 in 2 cases; no float16"


@pytest.mark.parametrize(
    ("name", "version", "usable"),
    [
        ("lvp_icd.json", "1.4.305", True),
        ("lvp_icd.x86_64.json", "1.1.230", False),  # Mesa 22: WebGPU finds no supported adapter
        ("vk_swiftshader_icd.json", "1.0.5", True),
    ],
)
def test_an_old_driver_in_software_is_passed_over(
    name: str, version: str, usable: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(str(RUNNERS))
    runner = importlib.import_module("run_webgpu")
    path = tmp_path / name
    assert not runner._is_usable(str(path))
    path.write_text(json.dumps({"ICD": {"library_path": "x.so", "api_version": version}}), "utf-8")
    assert runner._is_usable(str(path)) == usable
