"""``zoo catalog``: what the page lists, what changed since the last one, and what is refused."""

from __future__ import annotations

import base64
import json
import os
import re
import shutil
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import save_file

from exporters.export import export
from exporters.steps.options import ExportOptions
from specs.language.load import load
from specs.language.preset_files import preset_names
from tests.catalogs import catalog_of_presets
from tests.cli.program import invoke
from zoo.builder import assemble
from zoo.pages.catalog_page import data_in

Run = Callable[..., Any]


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Runs zoo in an empty directory with a cache of its own."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("ZOO_CACHE_DIR", str(tmp_path / "cache"))
    return lambda *arguments: invoke(*arguments)


def exported(place: str, *assignments: str, **options: Any) -> Path:
    """An unverified export of a tiny model below ``zoo``."""
    directory = Path("zoo", place)
    export(load("tiny-gpt", assignments), directory, ExportOptions(**{"verify": False, **options}))
    return directory


def details(page: str) -> dict[str, tuple[str, str]]:
    """The HTML that a page shows on demand, of the model and of the artefact, by the artefact's name."""
    data = json.loads(page.partition("const DETAILS = ")[2].partition(";\n")[0])

    def unpacked(text: str) -> str:
        return zlib.decompress(base64.b64decode(text)).decode()

    return {
        name: (unpacked(data["models"][model]), unpacked(artefact))
        for name, (model, artefact) in data["artefacts"].items()
    }


def names(page: str) -> list[str]:
    """The artefacts of the table."""
    return re.findall(r'<tr data-name="([^"]*)"', page)


@pytest.mark.slow
def test_every_export_below_a_directory_is_listed(run: Run) -> None:
    exported("gpt/fp32")
    exported("gpt/int8", precision="int8", target="cpu", verify=True)
    exported("deep/er/small", "decoder.layers=1", "summary=<b>small</b> & fast")
    result = run("catalog", "zoo")
    assert (result.exit_code, result.stderr) == (0, "")
    assert result.stdout.startswith("zoo  3 artefacts of 2 models\n\ncatalog.html is written in ")
    page = Path("catalog.html").read_text("utf-8")
    assert names(page) == ["deep/er/small", "gpt/fp32", "gpt/int8"]
    assert page.startswith("<!doctype html>")
    assert page.endswith("<!-- written by zoo -->\n")
    assert not re.search(r"(src|href)=.?https?:", page)
    assert "<b>small</b>" not in page
    found = details(page)
    assert found["gpt/fp32"][0] == found["gpt/int8"][0]  # one drawing for both
    model, artefact = found["gpt/int8"]
    assert "<svg" in model
    assert "223,616" in model
    assert "MFLOP" in model
    assert "comparisons passed" in artefact
    assert "InferenceSession(" in artefact
    manifest = json.loads(Path("zoo/gpt/int8/export.json").read_text())
    assert all(file["sha256"] in artefact for file in manifest["files"].values())
    assert "&lt;b&gt;small&lt;/b&gt; &amp; fast" in found["deep/er/small"][0]
    assert "This export was not verified" in found["gpt/fp32"][1]
    assert '"gpt/fp32":[1,' in page


def test_a_page_is_the_same_while_nothing_changes(run: Run) -> None:
    exported("a")
    assert run("catalog", "zoo").exit_code == 0
    first = Path("catalog.html").read_bytes()
    assert run("catalog", "zoo").exit_code == 0
    assert Path("catalog.html").read_bytes() == first


@pytest.mark.slow
def test_changes_are_listed_with_reasons(run: Run) -> None:
    for name in ("layers", "seed", "precision", "proof", "gone", "same"):
        exported(name)
    assert run("catalog", "zoo").exit_code == 0
    exported("layers", "decoder.layers=2")
    exported("seed", seed=7)
    exported("precision", precision="int8")
    exported("proof", verify=True)
    exported("new")
    shutil.rmtree("zoo/gone")
    result = run("catalog", "zoo", "--json")
    assert (result.exit_code, result.stderr) == (0, "")
    changes = json.loads(result.stdout)["changes"]
    assert (changes["added"], changes["removed"]) == (["new"], ["gone"])
    assert changes["changed"] == {
        "layers": ["decoder.layers 4 \u2192 2"],
        "precision": ["precision fp32 \u2192 int8"],
        "proof": ["verification unverified \u2192 verified"],
        "seed": ["weights random, seed 0 \u2192 random, seed 7"],
    }
    page = Path("catalog.html").read_text("utf-8")
    assert "1 added, 1 removed, 4 changed" in page
    assert "<code>layers</code> decoder.layers 4 \u2192 2" in page
    shutil.rmtree("zoo/new")
    result = run("catalog", "zoo")
    assert result.stdout.startswith(
        "zoo  5 artefacts of 2 models\n  changed new: removed\n\ncatalog.html is "
    )
    history = data_in(Path("catalog.html").read_text("utf-8"))["changes"]
    assert [each["removed"] for each in history] == [["new"], ["gone"]]


@pytest.mark.slow
def test_other_weights_of_a_checkpoint_are_a_change(run: Run) -> None:
    for seed in (1, 2):
        generator = torch.Generator().manual_seed(seed)
        parameters = assemble(load("tiny-gpt")).named_parameters()
        tensors = {name: torch.randn(each.shape, generator=generator) for name, each in parameters}
        save_file(tensors, "w.safetensors")
        exported("a", weights="w.safetensors")
        assert run("catalog", "zoo").exit_code == 0
    (change,) = data_in(Path("catalog.html").read_text("utf-8"))["changes"]
    assert change["changed"] == {"a": ["values of the weights"]}


@pytest.mark.slow
def test_artefacts_of_a_zoo_file_are_listed_and_missing_ones_named(run: Run) -> None:
    options = {"verify": False}
    zoo = {
        "defaults": {"options": options},
        "models": {"tiny-gpt": {"matrix": {"precision": ["fp32", "int8"]}}, "bert-tiny": {}},
    }
    Path("zoo.yaml").write_text(json.dumps(zoo))
    assert run("make", "tiny-gpt").exit_code == 0
    result = run("catalog")
    assert result.exit_code == 1
    assert "  2 artefacts of 1 model\n\ncatalog.html is written in " in result.stdout
    assert result.stderr == "\n1 artefact not as built:\n  bert-tiny/portable-fp32: not built\n"
    page = Path("catalog.html").read_text("utf-8")
    assert names(page) == ["tiny-gpt/portable-fp32", "tiny-gpt/portable-int8"]
    assert '<code>bert-tiny/portable-fp32</code> <span class="bad">not built</span>' in page
    assert "<code>build/tiny-gpt/portable-int8</code>" in details(page)["tiny-gpt/portable-int8"][1]
    assert run("make").exit_code == 0
    result = run("catalog", "zoo.yaml")
    assert result.exit_code == 0
    assert result.stdout.splitlines()[1] == "  changed bert-tiny/portable-fp32: added"


@pytest.mark.slow
def test_changed_and_damaged_exports_are_named(run: Run) -> None:
    size, contents, damaged = (exported(name) for name in ("size", "contents", "damaged"))
    assert run("catalog", "zoo").exit_code == 0
    with (size / "model.onnx.data").open("ab") as file:
        file.write(b"more")
    data = bytearray((contents / "model.onnx.data").read_bytes())
    data[0] ^= 1
    (contents / "model.onnx.data").write_bytes(data)
    (damaged / "export.json").write_text("{}")
    result = run("catalog", "zoo")
    assert result.exit_code == 1
    lines = [line for line in result.stderr.splitlines() if not line.startswith("    ")]
    assert lines[:2] == ["", "2 artefacts not as built:"]
    assert lines[2].startswith("  damaged: ")
    assert lines[3].startswith("  size: model.onnx.data has ")
    assert len(lines) == 4
    result = run("catalog", "zoo", "--digests")
    assert result.exit_code == 1
    assert "contents: model.onnx.data has other contents than export.json records" in result.stderr
    page = Path("catalog.html").read_text("utf-8")
    assert "no verification applies to them" in details(page)["contents"][1]
    assert '<span class="bad">changed</span>' in page


REFUSED: list[tuple[list[str], str]] = [
    (["nowhere"], "nowhere: the file must exist\n  Check the path.\n"),
    (["empty"], "empty has no exports.\n  Build some with zoo make or zoo export, or give another directory.\n"),
    (["zoo", "-o", "page.txt"], "--output must end in .html.\n  value: 'page.txt'\n  Pass a path such as page.html.\n"),
    (["zoo", "-o", "mine.html"], "mine.html was not written by zoo, and is not replaced.\n  Pass another --output, or remove the file.\n"),
    (["zoo", "-o", "other.html"], "other.html is not a catalog of this version of zoo.\n  Give another --output, or remove it.\n"),
]  # fmt: skip


@pytest.mark.parametrize(("arguments", "message"), REFUSED)
def test_impossible_requests_are_refused(run: Run, arguments: list[str], message: str) -> None:
    Path("empty").mkdir()
    Path("zoo").mkdir()
    Path("mine.html").write_text("<!DOCTYPE html>")
    Path("other.html").write_text("<!DOCTYPE html>\n<!-- written by zoo -->\n")
    result = run("catalog", *arguments)
    assert (result.exit_code, result.stderr, result.stdout) == (2, message, "")


def test_hidden_directories_and_links_are_not_followed(run: Run) -> None:
    exported("a")
    exported(".a.partial-01234567/new")
    os.symlink("a", "zoo/b")
    assert run("catalog", "zoo").exit_code == 0
    assert names(Path("catalog.html").read_text("utf-8")) == ["a"]


@pytest.mark.slow
def test_every_preset_fits_a_page(tmp_path: Path) -> None:
    page = catalog_of_presets(tmp_path).page(tmp_path)
    assert len(names(page)) == len(preset_names()) > 200
    assert len(page.encode()) < 10_000 * len(preset_names())
    assert len({model for model, _ in details(page).values()}) == len(preset_names())
    assert '<td class="number" data-value="46702792704">46.7 G, 12.9 G active</td>' in page
