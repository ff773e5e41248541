"""Digests of files and weights, and that they are the same wherever and however often files are made."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import threading
from pathlib import Path
from typing import Any

import onnx
import pytest

from exporters.data.digests import followed
from exporters.layouts import LAYOUTS
from specs.base.errors import UserError
from tests.cli.process import ZOO
from tests.exporters.models import contents, written
from tests.exporters.whole.test_export import checkpoint
from tests.thinned import one_in
from tests.zoo.tiny import gpt2, t5
from zoo.files.card import has_own_card
from zoo.record.integrity import Change, check_integrity, check_sizes
from zoo.record.manifest import read_manifest, read_record

EXPORTS: dict[str, tuple[Any, dict[str, Any]]] = {
    "fp32": (gpt2, {}),
    "int4": (gpt2, {"precision": "int4", "target": "cpu"}),
    "two graphs": (t5, {"precision": "int8"}),
    "torch": (t5, {"via": "torch"}),
    "verified": (gpt2, {"verify": True, "precision": "fp16"}),
}


@one_in(2)
@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=pytest.mark.slow if name == "torch" else ()) for name in EXPORTS]
)
def test_every_file_and_weight_has_its_digest(name: str, tmp_path: Path) -> None:
    make, options = EXPORTS[name]
    result = written(make(), tmp_path / "x", **{"verify": False, **options})
    manifest = read_manifest(tmp_path / "x")
    assert manifest == result.manifest
    assert_true(tmp_path / "x")
    for path, graph in manifest.graphs.items():
        stored = onnx.load(tmp_path / "x" / path, load_external_data=False).graph
        assert graph.nodes == len(stored.node)
        for tensor in stored.initializer:
            said = {entry.key: entry.value for entry in tensor.external_data}
            if said:
                record = manifest.tensors[said["location"]][tensor.name]
                assert (record.offset, record.length) == (int(said["offset"]), int(said["length"]))


def assert_true(directory: Path) -> None:
    """Every digest of a manifest is that of the bytes, and every file is in it, but for the card, which has its own."""
    manifest, files = read_manifest(directory), contents(directory)
    assert manifest.files.keys() == files.keys() - {"export.json", "build.json", "probe.npz", "README.md"}
    assert has_own_card(directory)
    assert manifest.tensors
    for name, file in manifest.files.items():
        assert (file.size, file.sha256) == (len(files[name]), hashlib.sha256(files[name]).hexdigest())
    for name, tensors in manifest.tensors.items():
        for tensor in tensors.values():
            part = files[name][tensor.offset : tensor.offset + tensor.length]
            assert tensor.sha256 == hashlib.sha256(part).hexdigest()
    assert check_integrity(read_record(directory)).intact


def test_bytes_that_the_kernel_copies_have_digests_too(tmp_path: Path) -> None:
    checkpoint(gpt2(), tmp_path / "w.safetensors")
    written(gpt2(), tmp_path / "x", weights=str(tmp_path / "w.safetensors"), verify=False)
    assert_true(tmp_path / "x")


def test_every_name_of_a_data_file_is_recorded(tmp_path: Path) -> None:
    written(t5(), tmp_path / "x", layout="transformers-js", verify=False)
    manifest = read_manifest(tmp_path / "x")
    names = {path.replace(".onnx", ".onnx_data") for path in manifest.graphs}
    assert manifest.tensors.keys() == names
    assert len(names) == len(list(manifest.graphs)) > 1
    assert all(name.startswith(LAYOUTS["transformers-js"].data.split("/")[0]) for name in names)
    assert_true(tmp_path / "x")


def test_without_weights_there_are_digests_of_the_graph_alone(tmp_path: Path) -> None:
    written(gpt2(), tmp_path / "x", weights="none", verify=False)
    manifest = read_manifest(tmp_path / "x")
    assert (manifest.weights, manifest.seed, manifest.tensors) == ("none", None, {})
    assert manifest.files.keys() == {"model.onnx", "spec.yaml"}


def test_changes_are_found_and_named(tmp_path: Path) -> None:
    written(gpt2(), tmp_path / "x", verify=False)
    manifest, data = read_manifest(tmp_path / "x"), tmp_path / "x" / "model.onnx.data"
    kept = data.read_bytes()
    place = manifest.tensors["model.onnx.data"]["decoder.final_norm.weight"]
    data.write_bytes(kept[: place.offset] + b"\xff" + kept[place.offset + 1 :])
    changed = Change("model.onnx.data", "contents", len(kept), len(kept), ("decoder.final_norm.weight",))
    assert check_integrity(read_record(tmp_path / "x")).changes == (changed,)
    assert check_integrity(read_record(tmp_path / "x"), contents=False).intact
    check_sizes(tmp_path / "x", manifest)
    data.write_bytes(kept[:-1])
    with pytest.raises(UserError) as told:
        check_sizes(tmp_path / "x", manifest)
    assert str(told.value) == (
        f"{tmp_path / 'x'} has changed since it was exported: model.onnx.data has {len(kept) - 1:,} bytes, and export.json "
        f"records {len(kept):,}\n  Copy the directory again, or export the model again."
    )
    data.unlink()
    with pytest.raises(UserError, match=r"model\.onnx\.data is missing"):
        check_sizes(tmp_path / "x", manifest)
    (tmp_path / "x" / "spec.yaml").write_text("{}")  # which may be edited
    data.write_bytes(kept)
    check_sizes(tmp_path / "x", manifest)


def test_digests_follow_the_writing_in_any_order(tmp_path: Path) -> None:
    content = bytes(range(256)) * 10
    places = {"a": (0, 100), "b": (128, 1000), "again": (128, 1000), "c": (1200, 0), "d": (1280, 1280)}
    with followed(tmp_path / "data", places) as (following, digests):
        (tmp_path / "data").write_bytes(content)
        for name in ("d", "b", "c"):
            following.written([places[name]])
        assert not digests.done()
        following.written([places["a"]])
        found = digests.result()
    assert found.file.sha256 == hashlib.sha256(content).hexdigest()
    for name, (offset, length) in places.items():
        assert found.tensors[name].sha256 == hashlib.sha256(content[offset : offset + length]).hexdigest()


def test_digests_end_where_weights_are_never_written(tmp_path: Path) -> None:
    before = set(threading.enumerate())
    with pytest.raises(KeyError), followed(tmp_path / "data", {"a": (0, 4)}) as (_, digests):
        raise KeyError
    assert isinstance(digests.exception(), RuntimeError)
    assert set(threading.enumerate()) <= before


# ------------------------------------------------------------------------------------------- the same bytes


WAYS = {
    "fp32": ["t5", "--precision", "fp32"],
    "int4": ["gpt", "--precision", "int4", "--target", "cpu"],
    "int8": ["t5", "--precision", "int8"],
    "client": ["gpt", "--layout", "transformers-js", "--precision", "fp16"],
}


@pytest.mark.slow
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("weights", ["random", "a checkpoint"])
def test_the_same_inputs_give_the_same_bytes(way: str, weights: str, tmp_path: Path) -> None:
    specs = {"gpt": gpt2(position={"kind": "rope"}, d_model=64, vocab_size=999), "t5": t5(d_model=64)}
    which, *options = WAYS[way]
    spec = specs[which]
    made = []
    for number, place in enumerate(("one", "two/deeper")):
        directory = tmp_path / place
        directory.mkdir(parents=True)
        (directory / "spec.yaml").write_text(json.dumps(spec.model_dump(mode="json", exclude_none=True)))
        origin = directory / f"weights-{number}.safetensors"
        checkpoint(spec, origin)
        source = "random" if weights == "random" else str(origin if number else origin.name)
        environment = os.environ | {
            "OMP_NUM_THREADS": str(1 + 2 * number), "PYTHONHASHSEED": str(number), "PYTHONPATH": os.getcwd(),
        }  # fmt: skip
        command = [*ZOO, "export", "spec.yaml", "--weights", source, "-o", "out", *options]
        done = subprocess.run(command, cwd=directory, env=environment, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        made.append(contents(directory / "out"))
        shutil.rmtree(directory / "out")
    one, two = made
    assert one.keys() == two.keys()
    assert [name for name in one if one[name] != two[name]] in ([], ["build.json"])
    assert not any(b"weights-0" in content for name, content in one.items() if name != "build.json")


@pytest.mark.slow
def test_a_page_does_not_depend_on_hashes(tmp_path: Path) -> None:
    for seed in ("0", "1"):
        environment = os.environ | {"PYTHONHASHSEED": seed, "PYTHONPATH": os.getcwd()}
        command = [*ZOO, "report", "t5-small", "--device", "h100", "--html", f"{seed}.html"]
        subprocess.run(command, cwd=tmp_path, env=environment, check=True)
    assert (tmp_path / "0.html").read_bytes() == (tmp_path / "1.html").read_bytes()
