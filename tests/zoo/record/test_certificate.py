"""Exports verified where they are deployed, with ONNX Runtime and NumPy alone."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import onnx
import pytest
from onnx import numpy_helper

from exporters.export import export
from exporters.steps.options import ExportOptions
from specs.language.load import load
from specs.model.model import Model
from tests.cli.process import environment, zoo
from tests.exporters.mixtures import MIXTURES
from tests.thinned import one_in
from tests.zoo import tiny
from zoo.record.certificate import certify, main

ALONE = """
import sys
import zipfile
for name in ("torch", "onnx", "pydantic", "typer", "rich", "yaml", "safetensors"):
    sys.modules[name] = None
sys.argv = ["certificate", *sys.argv[1:]]
import runpy
runpy.run_module("zoo.record.certificate", run_name="__main__")
"""


@pytest.fixture(scope="module")
def good(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("good") / "x"
    export(tiny.gpt2(), place, ExportOptions())
    return place


@pytest.fixture
def copied(good: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(good, tmp_path / "copied"))


@one_in(6)
@pytest.mark.parametrize(
    ("spec", "options", "calls"),
    [
        (tiny.gpt2(), {"target": "cpu", "precision": "int8"}, 3),
        (tiny.bert(), {"precision": "int8"}, 1),
        (tiny.bert(), {"precision": "fp16"}, 1),
        (tiny.t5(), {}, 4),
        (tiny.gpt2(), {"target": "tensorrt", "cache_length": 8}, 3),
        pytest.param(
            load("tiny-gpt"),
            {"target": "cpu", "precision": "int4", "logits": "last"},
            3,
            marks=pytest.mark.slow,
        ),
        pytest.param(tiny.t5(), {"target": "cpu", "precision": "int8"}, 4, marks=pytest.mark.slow),
        pytest.param(
            load("tiny-gpt"),
            {"target": "cpu", "precision": "int8", "cache_precision": "int8"},
            3,
            marks=pytest.mark.slow,
        ),
        (MIXTURES["sigmoid"], {"target": "cpu"}, 3),
        pytest.param(MIXTURES["gpt-oss"], {"target": "cpu", "precision": "int4"}, 3, marks=pytest.mark.slow),
        pytest.param(MIXTURES["gelu"], {"precision": "int8"}, 3, marks=pytest.mark.slow),
        pytest.param(tiny.gpt2(), {"via": "torch"}, 3, marks=pytest.mark.slow),
        pytest.param(MIXTURES["sigmoid"], {"via": "torch"}, 3, marks=pytest.mark.slow),
    ],
)
def test_every_kind_of_export_has_a_case_that_passes(
    spec: Model, options: dict[str, Any], calls: int, tmp_path: Path
) -> None:
    export(spec, tmp_path / "x", ExportOptions(**options))
    found = certify(tmp_path / "x")
    assert found.passed, found
    assert found.provider == "CPUExecutionProvider"
    assert len({name.partition(", ")[2].partition(", ")[0] for name in found.outputs}) == calls
    assert all(difference <= tolerance < 0.2 for difference, tolerance in found.outputs.values())


def test_a_flipped_bit_of_the_weights_is_found(copied: Path) -> None:
    data = bytearray((copied / "model.onnx.data").read_bytes())
    data[100] ^= 1
    (copied / "model.onnx.data").write_bytes(data)
    found = certify(copied)
    assert found.faults == ["model.onnx.data has other contents than were recorded"]
    assert not found.outputs


@pytest.mark.parametrize("name", ["spec.yaml", "probe.npz", "model.onnx"])
def test_a_missing_file_is_found(name: str, copied: Path) -> None:
    (copied / name).unlink()
    assert certify(copied).faults == [f"{name} is missing"]


def record_again(directory: Path) -> None:
    """Give every file the digest that it has now."""
    manifest = json.loads((directory / "export.json").read_text())
    for name, record in manifest["files"].items():
        record["sha256"] = hashlib.sha256((directory / name).read_bytes()).hexdigest()
    content = json.dumps(manifest).encode()
    (directory / "export.json").write_bytes(content)
    build = json.loads((directory / "build.json").read_text())
    build["export"] = hashlib.sha256(content).hexdigest()
    (directory / "build.json").write_text(json.dumps(build))


def test_a_wrong_graph_is_found_even_with_digests_of_its_own(copied: Path) -> None:
    model = onnx.load(copied / "model.onnx", load_external_data=False)
    scalars = [each for each in model.graph.initializer if each.data_type == 1 and not each.external_data]
    for scalar in scalars:
        scalar.CopyFrom(numpy_helper.from_array(numpy_helper.to_array(scalar) * 3, scalar.name))
    assert scalars
    onnx.save(model, copied / "model.onnx")
    assert "model.onnx has other contents than were recorded" in certify(copied).faults
    record_again(copied)
    found = certify(copied)
    assert not found.passed
    assert "logits is off by" in found.faults[0]


def test_a_graph_that_does_not_run_is_found(copied: Path) -> None:
    (copied / "model.onnx").write_bytes(b"nothing")
    record_again(copied)
    assert "The recorded case does not run" in certify(copied).faults[0]


def test_another_manifest_is_found(copied: Path) -> None:
    (copied / "export.json").write_text((copied / "export.json").read_text() + " ")
    assert "export.json is not the one that build.json was written for" in certify(copied).faults


def test_without_verification_nothing_is_recorded(tmp_path: Path) -> None:
    export(tiny.gpt2(), tmp_path / "x", ExportOptions(verify=False))
    found = certify(tmp_path / "x")
    assert not found.passed
    assert not found.faults
    assert found.note.startswith("No case was recorded")


def test_numpy_and_onnxruntime_are_enough(copied: Path) -> None:
    command = [sys.executable, "-c", ALONE, str(copied), "cpu"]
    good = subprocess.run(command, env=environment(), capture_output=True, text=True, check=False)
    assert good.returncode == 0, good.stderr
    assert json.loads(good.stdout)["passed"]
    (copied / "model.onnx.data").write_bytes(b"")
    assert subprocess.run(command, env=environment(), capture_output=True, check=False).returncode == 1


@pytest.mark.slow
def test_in_an_environment_with_nothing_else(copied: Path, tmp_path: Path) -> None:
    subprocess.run([sys.executable, "-m", "venv", tmp_path / "alone"], check=True)
    python = tmp_path / "alone" / "bin" / "python"
    install = [str(python), "-m", "pip", "install", "-q", "onnxruntime", "numpy"]
    if subprocess.run(install, capture_output=True, check=False).returncode:
        pytest.skip("the package index cannot be reached")
    module = shutil.copy("zoo/record/certificate.py", tmp_path / "certificate.py")
    found = subprocess.run([python, module, copied], capture_output=True, text=True, check=False)
    assert found.returncode == 0, found.stderr
    assert json.loads(found.stdout)["passed"]


@pytest.mark.slow
def test_the_command(copied: Path) -> None:
    good = zoo("verify", "copied", "-v", cwd=copied.parent, env=environment())
    assert good.returncode == 0, good.stderr
    assert "model.onnx, call 3, logits" in good.stdout
    assert "files   4 files match their recorded SHA-256" in good.stdout
    assert "Verified copied in " in good.stdout
    again = zoo("verify", str(copied), "--pytorch", "--json")
    assert again.returncode == 0
    assert json.loads(again.stdout)["passed"]
    unknown = zoo("verify", str(copied), "--provider", "cudda")
    assert unknown.returncode == 2
    assert "Did you mean 'cuda'?" in unknown.stderr
    missing = zoo("verify", str(copied / "nowhere"))
    assert missing.returncode == 2
    (copied / "model.onnx.data").write_bytes(b"")
    bad = zoo("verify", str(copied), "--json")
    assert bad.returncode == 1
    failed = json.loads(bad.stdout)
    assert (failed["passed"], len(failed["errors"])) == (False, 1)
    again = zoo("verify", str(copied), "--pytorch", "--json")
    assert again.returncode == 1
    failed = json.loads(again.stdout)
    assert (failed["passed"], len(failed["errors"])) == (False, 1)


def _changed(record: dict[str, Any], path: str, value: Any) -> bytes:
    *places, last = path.split("/")
    inner: Any = record
    for place in places:
        inner = inner[place]
    inner[last] = value
    return json.dumps(record).encode()


DAMAGES = {
    "export.json": [
        ("files", 3),
        ("files", {"a": 3}),
        ("graphs", None),
        ("graphs/model.onnx/environment", 3),
        ("providers", 5),
    ],
    "build.json": [("export", 3), ("probe", 3), ("probe", {"size": 1}), ("probe/sha256", None)],
}


@pytest.mark.parametrize("record", DAMAGES)
def test_damaged_records_give_a_message_and_no_traceback(copied: Path, record: str) -> None:
    good = json.loads((copied / record).read_bytes())
    texts = [b"", b"[" * 100_000, b"{}", b"[]", b"\xff", b'{"files": 1e999}']
    texts += [_changed(json.loads(json.dumps(good)), *damage) for damage in DAMAGES[record]]
    for text in texts:
        (copied / record).write_bytes(text)
        assert main([str(copied)]) in (1, 2)
    alone = subprocess.run(
        [sys.executable, "-m", "zoo.record.certificate", str(copied)],
        env=environment(),
        capture_output=True,
        text=True,
        check=False,
    )
    assert alone.returncode in (1, 2)
    assert "Traceback" not in alone.stderr
    assert alone.returncode == 1 or alone.stderr.endswith("export the model again.\n")


@pytest.mark.parametrize("arguments", [(), ("a", "b", "c"), ("a", "tpu")])
def test_wrong_arguments_give_the_usage(arguments: tuple[str, ...]) -> None:
    assert main(arguments) == 2


@pytest.mark.parametrize("name", ["model.onnx", "probe.npz", "export.json", "build.json"])
@pytest.mark.parametrize("attack", ["link", "pipe", "device"])
def test_links_pipes_and_devices_do_not_pass(copied: Path, name: str, attack: str) -> None:
    shutil.copyfile(copied / name, copied.parent / "same")
    (copied / name).unlink()
    if attack == "pipe":
        os.mkfifo(copied / name)
    else:
        (copied / name).symlink_to("../same" if attack == "link" else "/dev/zero")
    assert main([str(copied)]) in (1, 2)


def test_a_record_sets_no_other_environment(copied: Path) -> None:
    manifest = json.loads((copied / "export.json").read_bytes())
    for graph in manifest["graphs"].values():
        graph["environment"] = {"LD_PRELOAD": "evil.so"}
    (copied / "export.json").write_text(json.dumps(manifest))
    build = json.loads((copied / "build.json").read_bytes())
    build["export"] = hashlib.sha256((copied / "export.json").read_bytes()).hexdigest()
    (copied / "build.json").write_text(json.dumps(build))
    assert certify(copied).passed
    assert "LD_PRELOAD" not in os.environ


def test_a_damaged_case_is_a_fault(copied: Path) -> None:
    for content in (b"", b"PK\x03\x04", b"\x93NUMPY"):
        (copied / "probe.npz").write_bytes(content)
        build = json.loads((copied / "build.json").read_bytes())
        build["probe"] = {"size": len(content), "sha256": hashlib.sha256(content).hexdigest()}
        (copied / "build.json").write_text(json.dumps(build))
        found = certify(copied)
        assert not found.passed
        assert found.faults
        assert not found.faults[0].endswith(": ")


@pytest.mark.slow
def test_a_case_that_unpacks_without_end_is_a_fault(copied: Path) -> None:
    with (
        zipfile.ZipFile(copied / "probe.npz", "w", zipfile.ZIP_DEFLATED) as held,
        held.open("probe.npy", "w") as file,
    ):
        for _ in range(300):
            file.write(bytes(2**20))
    build = json.loads((copied / "build.json").read_bytes())
    build["probe"]["sha256"] = hashlib.sha256((copied / "probe.npz").read_bytes()).hexdigest()
    (copied / "build.json").write_text(json.dumps(build))
    assert "probe.npz unpacks to more than 256 MiB" in certify(copied).faults[0]
