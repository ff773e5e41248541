"""Compiled files: written beside their graphs with their digests, or nothing is written."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from exporters.export import export
from exporters.steps.options import ExportOptions
from exporters.verification.engines import compile_export as module
from exporters.verification.engines.compile_export import compile_export
from exporters.verification.engines.engine import RUNNERS, Engine
from exporters.verification.engines.find import VARIABLE
from exporters.verification.engines.process import EngineError
from specs.base.errors import UserError
from tests.cli.program import as_json, invoke
from tests.zoo.tiny import bert, t5
from zoo.record.integrity import check_integrity
from zoo.record.manifest import read_manifest, read_record

WRITES = "open(options['output'], 'w').write(json.dumps([path[-10:], options['architectures'], options['inputs']]))\n"
REFUSES = (
    "if path.endswith('decoder_model.onnx'): raise RuntimeError('node there: no such kernel')\n        "
    + WRITES
)


@pytest.fixture
def compiler(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """Puts a compiler in the place of all engines, which does as it is told."""

    def put(body: str) -> None:
        runner = tmp_path / "runner.py"
        runner.write_text(
            f"import json, sys\nsys.path.insert(0, {str(RUNNERS)!r})\nfrom protocol import serve\n"
            "class Compiler:\n    node = r'^node (\\S+): '\n    def start(self, options): return {'version': '7'}\n"
            f"    def compile(self, path, options):\n        {body}        return {{}}\nserve(Compiler())\n"
        )
        engine = Engine(
            "fake", "", "compiles", runner, "json", (), targets=frozenset({"tensorrt"}), architectures=("sm89", "sm120")
        )  # fmt: skip
        monkeypatch.setattr(module, "ENGINES", {"fake": engine})
        monkeypatch.setattr("exporters.verification.engines.check.engine_named", lambda name: engine)
        monkeypatch.setenv(VARIABLE, str(tmp_path / "none"))

    return put


@pytest.fixture
def exported(tmp_path: Path) -> Path:
    """An export of a tiny T5 for the target."""
    export(t5(), tmp_path / "out", ExportOptions(target="tensorrt", cache_length=12, verify=False))
    return tmp_path / "out"


def test_compiled_files_are_recorded_with_their_digests(
    exported: Path, compiler: Callable[[str], None]
) -> None:
    compiler(WRITES)
    found = compile_export(exported, ("sm89", "sm120"))
    assert [each.path for each in found] == ["encoder_model.engine", "decoder_model.engine"]
    manifest = read_manifest(exported)
    record = manifest.compiled["decoder_model.engine"]
    assert (record.graph, record.engine, record.version) == ("decoder_model.onnx", "fake", "7")
    assert record.architectures == ("sm89", "sm120")
    assert read_record(exported).unproven == ""  # build.json names the new export.json
    assert check_integrity(read_record(exported), contents=True).intact
    graph, architectures, inputs = json.loads((exported / "decoder_model.engine").read_text())
    assert (graph, architectures) == ("model.onnx", ["sm89", "sm120"])
    assert inputs["input_ids"] == [[1, 1], [1, 1], [8, 12]]
    (exported / "decoder_model.engine").write_text("other")
    assert [each.file for each in check_integrity(read_record(exported), contents=True).changes] == [
        "decoder_model.engine"
    ]


def test_compiled_files_go_when_the_model_is_exported_again(
    exported: Path, compiler: Callable[[str], None]
) -> None:
    compiler(WRITES)
    compile_export(exported, ("sm89",))
    export(bert(), exported, ExportOptions(verify=False))
    assert not [*exported.glob("*.engine")]


def test_nothing_is_written_where_a_graph_does_not_compile(
    exported: Path, compiler: Callable[[str], None]
) -> None:
    compiler(REFUSES)
    before = {path.name: path.read_bytes() for path in exported.iterdir()}
    with pytest.raises(EngineError, match="no such kernel") as caught:
        compile_export(exported, ("sm89",))
    assert caught.value.node == "there"
    assert {path.name: path.read_bytes() for path in exported.iterdir()} == before


@pytest.mark.slow
def test_the_command_says_what_it_compiled(exported: Path, compiler: Callable[[str], None]) -> None:
    compiler(WRITES)
    shown = invoke("compile", exported, "--for", "sm89, sm120")
    assert shown.exit_code == 0, shown.output
    text = " ".join(shown.output.split())
    assert "encoder_model.engine: " in text
    assert text.count("sm89, sm120, compiled in ") == 2
    stated = as_json("compile", exported, "--for", "sm89")["engines"]
    assert stated["decoder_model.engine"]["architectures"] == ["sm89"]
    compiler(REFUSES)
    failed = invoke("compile", exported, "--for", "sm89")
    assert failed.exit_code == 1
    message = "The compiler refuses a graph at node there: node there: no such kernel"
    assert f"{message}\nNothing was written." in failed.output
    failed = invoke("compile", exported, "--for", "sm89", "--json")
    assert (failed.exit_code, json.loads(failed.stdout)["errors"]) == (1, [{"message": message}])


def test_what_cannot_be_compiled_is_refused(
    exported: Path, tmp_path: Path, compiler: Callable[[str], None]
) -> None:
    compiler(WRITES)
    with pytest.raises(UserError, match=r"compiles for: sm89, sm120\n  value: 'sm98'\n  Did you mean 'sm89'"):
        compile_export(exported, ("sm98",))
    export(bert(), tmp_path / "portable", ExportOptions(verify=False))
    with pytest.raises(UserError, match="No compiler takes graphs for target portable"):
        compile_export(tmp_path / "portable", ("sm89",))
    (exported / "model.sig").write_text("{}")
    with pytest.raises(UserError, match=r"Delete model\.sig, compile, and sign it again"):
        compile_export(exported, ("sm89",))
    (exported / "model.sig").unlink()
    with (exported / "model.onnx.data").open("r+b") as file:
        file.write(b"\xff")
    with pytest.raises(UserError, match="has changed since it was exported"):
        compile_export(exported, ("sm89",))
    assert not [*exported.glob("*.engine")]
