"""``zoo report --html``: where the page goes, and what is refused."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from tests.cli.program import as_json, done, invoke, refused
from zoo.pages import report_page

pytestmark = pytest.mark.usefixtures("empty_directory")


def page_of(*arguments: str) -> tuple[str, ...]:
    """The arguments for a page with one device, which is quick."""
    return ("report", *arguments, "--device", "h100", "--html")


@pytest.mark.slow
def test_the_page_is_written_and_named(tmp_path: Path) -> None:
    result = invoke(*page_of("tiny-gpt"), "pages/tiny.html")
    page = tmp_path / "pages" / "tiny.html"
    assert (result.exit_code, result.stderr) == (0, "")
    assert result.stdout.startswith("tiny-gpt  ")
    assert "\n\npages/tiny.html is ready in " in result.stdout
    text = page.read_text(encoding="utf-8")
    assert text.startswith("<!doctype html>")
    assert "<title>zoo report tiny-gpt</title>" in text
    assert text.count("NVIDIA") == 1
    assert list(page.parent.iterdir()) == [page]


@pytest.mark.slow
def test_sizes_and_changes_are_those_asked_for(tmp_path: Path) -> None:
    done(*page_of("tiny-gpt"), "a.html", "--batch", "3", "--length", "77", "--set", "name=wider",
               "--set", "decoder.block.feed_forward.hidden=300", "--precision", "int8")  # fmt: skip
    text = (tmp_path / "a.html").read_text(encoding="utf-8")
    assert "<h1>wider</h1>" in text
    assert '"B":{"least":1,"most":1024,"value":3},"T":{"least":1,"most":128,"value":77}' in text
    assert '"chosen":"int8"' in text


@pytest.mark.slow
def test_json_is_printed_in_addition_to_a_page(tmp_path: Path) -> None:
    data = as_json(*page_of("tiny-gpt"), "a.html")
    assert data == as_json("report", "tiny-gpt", "--device", "h100")
    assert (tmp_path / "a.html").exists()


@pytest.mark.slow
def test_a_page_is_replaced_and_nothing_else(tmp_path: Path) -> None:
    page = tmp_path / "a.html"
    for _ in range(2):
        done(*page_of("tiny-gpt"), "a.html")
    assert page.read_text(encoding="utf-8").endswith("<!-- written by zoo -->\n")
    page.write_text("<!DOCTYPE html><p>a page of mine")
    message = refused(*page_of("tiny-gpt"), "a.html")
    assert message == (
        "a.html was not written by zoo, and is not replaced.\n  Pass another --html, or remove the file.\n"
    )
    assert page.read_text() == "<!DOCTYPE html><p>a page of mine"


@pytest.mark.slow
def test_a_page_cannot_replace_a_directory_or_be_below_a_file(tmp_path: Path) -> None:
    result = refused(*page_of("tiny-gpt"), str(tmp_path))
    assert (
        result == f"{tmp_path} is a directory, and only regular files are replaced.\n"
        f"  Pass a file to --html, such as {tmp_path}/report.html.\n"
    )
    (tmp_path / "file").touch()
    message = refused(*page_of("tiny-gpt"), "file/a.html")
    assert message == "Cannot write file/a.html: file is a file.\n  Pass another --html.\n"


@pytest.mark.skipif(os.geteuid() == 0, reason="root writes everywhere")
def test_a_place_that_cannot_be_written_is_refused(tmp_path: Path) -> None:
    (tmp_path / "closed").mkdir(mode=0o500)
    result = invoke(*page_of("tiny-gpt"), "closed/a.html")
    assert (result.exit_code, result.stderr.splitlines()[0]) == (
        2, "Cannot write closed/a.html: Permission denied",
    )  # fmt: skip


def test_a_page_that_fails_leaves_the_old_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    page = tmp_path / "a.html"
    page.write_text("<!-- written by zoo -->\n")

    def fail(*arguments: object) -> str:
        raise KeyboardInterrupt

    monkeypatch.setattr(report_page, "shapes_section", fail)
    assert invoke(*page_of("tiny-gpt"), "a.html").exit_code != 0
    assert page.read_text() == "<!-- written by zoo -->\n"
    assert list(tmp_path.iterdir()) == [page]


@pytest.mark.slow
def test_an_exported_directory_shows_its_verification(tmp_path: Path) -> None:
    done("export", "tiny-gpt", "-o", "tiny")
    done(*page_of("tiny"), "a.html")
    text = (tmp_path / "a.html").read_text(encoding="utf-8")
    comparisons = json.loads((tmp_path / "tiny" / "build.json").read_text())["verification"]["comparisons"]
    verdict = f"{len(comparisons)} of {len(comparisons)} comparisons passed."
    assert verdict in text
    assert "The files are those that were verified: sizes and SHA-256 digests are as recorded." in text
    table = text.partition('<section id="verification">')[2].partition("</section>")[0]
    assert table.count("<tr>") == 1 + len(comparisons)
    assert all(f"{each['max_abs']:.1e}" in table for each in comparisons)
    done(*page_of("tiny-gpt"), "a.html")
    assert 'id="verification"' not in (tmp_path / "a.html").read_text(encoding="utf-8")
    done(*page_of("tiny"), "a.html", "--no-digests")
    unread = (tmp_path / "a.html").read_text(encoding="utf-8")
    assert "Their contents were not compared with the recorded digests." in unread
    with (tmp_path / "tiny" / "model.onnx.data").open("r+b") as file:
        file.write(b"touched")
    result = invoke(*page_of("tiny"), "a.html")
    told = "tiny has changed since it was exported: model.onnx.data has other contents than export.json records: "
    assert (result.exit_code, told in result.stderr.replace("\n  ", " ")) == (1, True)
    changed = (tmp_path / "a.html").read_text(encoding="utf-8")
    assert "The files have changed since they were exported, so no verification applies to them." in changed
    assert verdict not in changed
    assert "The files are those that were verified" not in changed
    done("report", "tiny")  # which shows no verification, and reads no weights
    (tmp_path / "tiny" / "model.onnx.data").write_bytes(b"short")
    assert invoke("report", "tiny").exit_code == 1
