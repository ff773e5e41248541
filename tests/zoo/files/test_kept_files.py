"""What the user put into an output directory is there after the next output."""

from __future__ import annotations

import errno
import json
import os
import stat
from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.zoo.files.outputs import EXPORT, put, tree
from zoo.files.destination import CONVERSION, DestinationError, check_replaceable, replacing

OLD = {"model.onnx": "old", "onnx/decoder.onnx": "old", "spec.yaml": "old"}
NEW = {"model.onnx": "new", "spec.yaml": "new"}


@pytest.fixture
def out(tmp_path: Path) -> Path:
    put(tmp_path / "out", OLD)
    return tmp_path / "out"


def test_unlisted_files_stay(out: Path) -> None:
    (out / "README.md").write_text("mine")
    (out / "eval" / "deep").mkdir(parents=True)
    (out / "eval" / "deep" / "scores").write_text("mine")
    (out / "onnx" / "notes").write_text("mine")
    (out / "empty").mkdir()
    put(out, NEW)
    assert tree(out) == {
        "README.md": "mine", "empty": None, "eval": None, "eval/deep": None, "eval/deep/scores": "mine",
        "onnx": None, "onnx/notes": "mine", "export.json": tree(out)["export.json"], **NEW,
    }  # fmt: skip
    assert os.listdir(out.parent) == ["out"]


def test_kept_files_keep_their_inode(out: Path) -> None:
    file = out / "logs" / "run"
    file.parent.mkdir(mode=0o500)
    os.chmod(file.parent, 0o700)
    file.write_text("mine")
    os.chmod(file.parent, 0o500)
    os.utime(file.parent, (1, 1))
    before, around = file.stat(), file.parent.stat()
    with file.open("r+") as being_read:
        put(out, NEW)
        assert being_read.read() == "mine"
    assert file.stat().st_ino == before.st_ino
    assert file.stat().st_nlink == 1
    assert (file.parent.stat().st_mode, file.parent.stat().st_mtime) == (around.st_mode, 1)
    assert os.listdir(out.parent) == ["out"]


def test_links_and_pipes_stay_what_they_are(out: Path, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "data").write_text("mine")
    (out / "data").symlink_to("../elsewhere")
    (out / "dangling").symlink_to("nowhere")
    os.mkfifo(out / "pipe")
    (out / "model.onnx").unlink()
    (out / "model.onnx").symlink_to(
        "../elsewhere/data"
    )  # ours by name: the link is replaced, not what it names
    put(out, NEW)
    assert os.readlink(out / "data") == "../elsewhere"
    assert os.readlink(out / "dangling") == "nowhere"
    assert stat.S_ISFIFO((out / "pipe").stat().st_mode)
    assert (out / "model.onnx").read_text() == "new"
    assert not (out / "model.onnx").is_symlink()
    assert tree(tmp_path / "elsewhere") == {"data": "mine"}


def test_the_directory_keeps_its_permissions(out: Path) -> None:
    os.chmod(out, 0o700)
    put(out, NEW)
    assert stat.S_IMODE(out.stat().st_mode) == 0o700


@pytest.mark.parametrize(
    ("theirs", "path"),
    [("config.json", "config.json"), ("config.json/notes", "config.json"), ("data", "data"), ("->data", "data")],
)  # fmt: skip
def test_unlisted_files_at_zoos_paths_are_refused_and_kept(out: Path, theirs: str, path: str) -> None:
    if theirs.startswith("->"):
        (out / theirs[2:]).symlink_to("..")
    else:
        (out / theirs).parent.mkdir(exist_ok=True)
        (out / theirs).write_text("mine")
    before = tree(out)
    with pytest.raises(DestinationError) as error:
        put(out, {**NEW, "config.json": "new", "data/weights": "new"})
    assert str(error.value).startswith(f"{out / path}")
    assert str(error.value).endswith(
        " is not listed in export.json, and stands where zoo writes a file of its own.\n"
        "  Move it, or choose another directory."
    )
    assert tree(out) == before
    assert os.listdir(out.parent) == ["out"]


NAMES = st.sampled_from(["a", "b", "a/c", "a/d", "b/c", "d/e/f", "d/e/g"])
FILES = st.dictionaries(NAMES, st.sampled_from(["x", "y"]), max_size=5)


@settings(max_examples=40, deadline=None)
@given(FILES.filter(bool), FILES.filter(bool), FILES)
def test_any_trees(ours: Mapping[str, str], following: Mapping[str, str], theirs: Mapping[str, str]) -> None:
    """All of the new files and all of the user's stand there, or all is as it was."""
    if not _fits({**ours, **theirs}) or not _fits(following):
        return
    theirs = {path: text for path, text in theirs.items() if path not in ours}
    with TemporaryDirectory() as name:
        out = Path(name, "out")
        put(out, ours)
        for path, text in theirs.items():
            (out / path).parent.mkdir(parents=True, exist_ok=True)
            (out / path).write_text(text)
        before = files(out)
        identical = all(following.get(path, text) == text for path, text in theirs.items())
        if _fits({**following, **theirs}) and identical:
            put(out, following)
            assert files(out) == {**following, **theirs, "export.json": files(out)["export.json"]}
        else:
            with pytest.raises(DestinationError, match="stands where zoo writes"):
                put(out, following)
            assert files(out) == before
        assert os.listdir(name) == ["out"]


def files(directory: Path) -> dict[str, str]:
    return {path: text for path, text in tree(directory).items() if text is not None}


def _fits(paths: Mapping[str, str]) -> bool:
    """Whether no path is a file and a directory at once."""
    return not any(other.startswith(f"{path}/") for path in paths for other in paths)


# -------------------------------------------------------------------------------------------- what is zoo's

FOREIGN = {
    "list": "[]", "text": "export", "empty": "", "object": "{}",
    "no_files": json.dumps({**EXPORT, "files": {}}),
    "names_alone": json.dumps({**EXPORT, "files": ["src/main.py"]}),
    "another_tool": json.dumps({"files": {"src/main.py": 1}}),
    "above": json.dumps({**EXPORT, "files": {"../src": 1}}),
    "absolute": json.dumps({**EXPORT, "files": {"/etc/passwd": 1}}),
    "roundabout": json.dumps({**EXPORT, "files": {"a//b": 1}}),
    "dot": json.dumps({**EXPORT, "files": {".": 1}}),
    "deep": "[" * 1_000_000,
}  # fmt: skip


@pytest.mark.parametrize("kind", FOREIGN)
@pytest.mark.parametrize("name", ["export.json", "conversion.json"])
def test_a_directory_with_a_foreign_manifest_is_refused(tmp_path: Path, name: str, kind: str) -> None:
    (tmp_path / "src").mkdir()
    (tmp_path / name).write_text(FOREIGN[kind])
    before = tree(tmp_path)
    with pytest.raises(DestinationError) as error, replacing(tmp_path, name):
        pass
    assert str(error.value) == (
        f"{tmp_path} holds files and no valid {name}, so zoo did not write it.\n"
        f"  Choose another directory, or remove this one."
    )
    assert tree(tmp_path) == before


def test_a_manifest_that_is_not_a_file_is_foreign(tmp_path: Path) -> None:
    places = [tmp_path / name for name in ("directory", "pipe", "link", "binary")]
    for place in places:
        place.mkdir()
    (places[0] / "export.json").mkdir()
    os.mkfifo(places[1] / "export.json")
    put(tmp_path / "real", NEW)
    (places[2] / "export.json").symlink_to("../real/export.json")
    (places[3] / "export.json").write_bytes(b"\xff\x00")
    for place in places:
        with pytest.raises(DestinationError, match=r"no valid export\.json"):
            check_replaceable(place)


def test_the_record_next_to_a_manifest_is_replaced_too(out: Path) -> None:
    (out / "build.json").write_text(json.dumps({"format": 2, "export": "0" * 64}))
    put(out, NEW)
    assert "build.json" not in tree(out)
    (out / "build.json").write_text('{"mine": 1}')
    put(out, NEW)
    assert tree(out)["build.json"] == '{"mine": 1}'


def test_an_export_does_not_replace_a_checkpoint_nor_the_other_way_round(tmp_path: Path) -> None:
    put(tmp_path / "export", NEW)
    put(tmp_path / "checkpoint", {"model.safetensors": "trained"}, CONVERSION)
    for place, manifest, message in (
        ("export", CONVERSION, "holds an export, which a converted checkpoint does not replace."),
        ("checkpoint", "export.json", "holds a converted checkpoint, which an export does not replace."),
    ):
        with pytest.raises(DestinationError, match=message):
            put(tmp_path / place, NEW, manifest)
    assert tree(tmp_path / "checkpoint")["model.safetensors"] == "trained"


# ------------------------------------------------------------------------------------ other file systems


def test_files_are_copied_where_there_are_no_hard_links(out: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def link(*arguments: object, **settings: object) -> None:
        raise OSError(errno.EPERM, "Operation not permitted")

    (out / "README.md").write_text("mine")
    (out / "link").symlink_to("README.md")
    os.utime(out / "README.md", (1, 1))
    monkeypatch.setattr(os, "link", link)
    put(out, NEW)
    assert files(out) == {**NEW, "README.md": "mine", "link": "-> README.md", "export.json": files(out)["export.json"]}  # fmt: skip
    assert (out / "README.md").stat().st_mtime == 1
    assert os.listdir(out.parent) == ["out"]


def test_files_that_cannot_be_kept_are_reported(out: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def link(source: Path, target: Path, **settings: object) -> None:
        raise OSError(errno.EXDEV, "Invalid cross-device link", str(source), None, str(target))

    (out / "eval").mkdir()
    (out / "eval" / "scores").write_text("mine")
    before = tree(out)
    monkeypatch.setattr(os, "link", link)
    with pytest.raises(DestinationError) as error:
        put(out, NEW)
    assert str(error.value) == (
        f"{out}/eval/scores cannot be carried along: Invalid cross-device link.\n"
        f"  Move it, or choose another directory."
    )
    assert tree(out) == before
    assert os.listdir(out.parent) == ["out"]
