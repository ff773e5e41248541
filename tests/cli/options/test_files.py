"""Files that commands write: known by how they end, and nothing else is replaced."""

from __future__ import annotations

import io
import json
import os
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import pytest
from PIL import Image

from cli.options.files import ENDINGS, check_place, write_own, write_whole
from specs.base.errors import UserError
from tests.cli.program import done, refused


def png() -> bytes:
    """A picture of one pixel."""
    made = io.BytesIO()
    Image.new("RGB", (1, 1), (1, 2, 3)).save(made, "PNG")
    return made.getvalue()


CONTENTS = {
    ".html": b"<!doctype html>\n<p>a page</p>\n",
    ".svg": b'<svg xmlns="http://www.w3.org/2000/svg"></svg>\n',
    ".md": b"```mermaid\nflowchart\n```\n",
    ".mmd": b"flowchart\n",
    ".json": json.dumps({"name": "x"}, indent=2).encode() + b"\n",
    ".png": png(),
}


@pytest.mark.parametrize("kind", ENDINGS)
def test_files_written_by_zoo_are_replaced_and_others_kept(tmp_path: Path, kind: str) -> None:
    file = tmp_path / "deep" / f"file{kind}"
    for _ in range(2):
        write_own(file, CONTENTS[kind], kind)
    assert file.read_bytes().endswith(ENDINGS[kind])
    file.write_bytes(CONTENTS[kind])
    with pytest.raises(UserError) as error:
        write_own(file, CONTENTS[kind], kind)
    assert str(error.value) == (
        f"{file} was not written by zoo, and is not replaced.\n  Pass another --output, or remove the file."
    )
    assert file.read_bytes() == CONTENTS[kind]
    file.write_bytes(b"")  # as mktemp makes them
    write_own(file, CONTENTS[kind], kind)
    assert os.listdir(file.parent) == [file.name]


def test_the_content_matches_the_suffix(tmp_path: Path) -> None:
    for kind, content in CONTENTS.items():
        write_own(tmp_path / f"file{kind}", content, kind)
    assert json.loads((tmp_path / "file.json").read_bytes()) == {"name": "x", "written_by": "zoo"}
    assert ElementTree.parse(tmp_path / "file.svg").getroot().tag.endswith("svg")
    with Image.open(tmp_path / "file.png") as image:
        image.load()
        assert (image.getpixel((0, 0)), image.info["Software"]) == ((1, 2, 3), "zoo")


@pytest.mark.parametrize(
    ("place", "kind", "fix"),
    [
        ("/dev/null", "a device", "Pass a file to --output."),
        ("link.svg", "a symbolic link", "Pass a file to --output."),
        ("dangling.svg", "a symbolic link", "Pass a file to --output."),
        ("pipe.svg", "a pipe", "Pass a file to --output."),
        ("there", "a directory", "Pass a file to --output, such as there/report.html."),
    ],
)
def test_nothing_but_regular_files_is_replaced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, place: str, kind: str, fix: str
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "victim").write_text("mine")
    (tmp_path / "link.svg").symlink_to("victim")
    (tmp_path / "dangling.svg").symlink_to("nowhere")
    os.mkfifo(tmp_path / "pipe.svg")
    (tmp_path / "there").mkdir()
    before = sorted(os.listdir(tmp_path))
    told = f"{place} is {kind}, and only regular files are replaced.\n  {fix}\n"
    commands = [["draw", "tiny-gpt", "--format", "svg", "-o", place], ["report", "tiny-gpt", "--html", place]]
    for command in commands:
        assert refused(*command) == told.replace("--output", command[-2].replace("-o", "--output"))
    with pytest.raises(UserError, match="only regular files are replaced"):
        write_whole(Path(place), b"spec")
    assert sorted(os.listdir(tmp_path)) == before
    assert (tmp_path / "victim").read_text() == "mine"


def test_names_that_others_guess_are_not_followed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "victim").write_text("mine")
    (tmp_path / ".x.svg.partial").symlink_to("victim")
    done("draw", "tiny-gpt", "-o", "x.svg")
    assert (tmp_path / "victim").read_text() == "mine"
    assert sorted(os.listdir(tmp_path)) == [".x.svg.partial", "victim", "x.svg"]


@pytest.mark.parametrize("name", ["notes.md", "photo.png", "figure.svg", "graph.mmd"])
def test_a_drawing_does_not_replace_a_file_of_the_users(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / name).write_text("mine")
    message = refused("draw", "tiny-gpt", "-o", name)
    assert message.startswith(f"{name} was not written by zoo, and is not replaced.")
    assert (tmp_path / name).read_text() == "mine"


@pytest.mark.skipif(os.geteuid() == 0, reason="root reads everything")
def test_a_file_that_cannot_be_read_is_refused(tmp_path: Path) -> None:
    (tmp_path / "closed.svg").touch(mode=0)
    with pytest.raises(UserError, match=r"closed\.svg cannot be read: Permission denied\."):
        check_place(tmp_path / "closed.svg", ".svg", "--output")
