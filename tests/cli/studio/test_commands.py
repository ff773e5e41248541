"""The copied command makes the model that the studio shows."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Any

import pytest

from tests.cli.program import as_json
from tests.cli.studio.conftest import Page, text_of
from tests.thinned import one_in

EDITS: dict[str, tuple[str, list[tuple[str, str]]]] = {
    "rope": ("gpt2", [("kind: learned", "kind: rope")]),
    "norm and depth": (
        "gpt2",
        [("kind: layer_norm, eps: 1.0e-05", "kind: rms_norm"), ("layers: 12", "layers: 6")],
    ),
    "name": ("tiny-gpt", [("name: tiny-gpt", "name: other")]),
    "nothing": ("llama-3-8b", []),
    "untied": (
        "gpt2",
        [("head: {kind: language_modeling", "head: {kind: language_modeling, tie_embeddings: false")],
    ),
    "windows": ("gemma2-2b", [("window: 4096", "window: 512")]),
    "experts": ("mixtral-8x7b", [("experts: 8", "experts: 4")]),
    "vocabulary": ("t5-small", [("vocab_size: 32128", "vocab_size: 1000")]),
}


def parameters(command: str) -> int:
    """What ``zoo params`` counts for the arguments of a ``zoo build``."""
    words = shlex.split(command)
    assert words[:2] == ["zoo", "build"]
    total: int = as_json("params", *words[2:])["total_parameters"]
    return total


def copied(page: Page, text: str, **opened: str) -> Any:
    answer = page.post("command", text=text, **opened)
    assert answer.status_code == 200, answer.text
    return answer.json()


@one_in(3)
@pytest.mark.parametrize("edit", EDITS)
def test_an_edited_preset_is_copied_as_assignments_with_the_same_count(page: Page, edit: str) -> None:
    preset, changes = EDITS[edit]
    text = text_of(preset)
    for old, new in changes:
        assert old in text, old
        text = text.replace(old, new, 1)
    told = copied(page, text, preset=preset)
    assert told["command"].startswith(f"zoo build {preset}")
    assert ("--set" in told["command"]) == (bool(changes) and edit != "name")
    assert told["unsaved"] == ""
    assert parameters(told["command"]) == page.answer(text)["counts"]["parameters"]


def test_an_opened_file_is_copied_by_its_path_from_where_the_studio_was_started(
    page: Page, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(folder.parent)
    text = f"# mine\n{text_of('tiny-gpt')}"
    (folder / "my model.yaml").write_text(text)
    same = copied(page, text, file="my model.yaml")
    assert same == {"command": f"zoo build '{folder.name}/my model.yaml'", "unsaved": ""}
    edited = text.replace("layers: 4", "layers: 2")
    told = copied(page, edited, file="my model.yaml")
    assert told["command"] == f"zoo build '{folder.name}/my model.yaml' --set decoder.layers=2"
    assert parameters(told["command"]) == page.answer(edited)["counts"]["parameters"]
    (tmp_path / "outside.yaml").write_text(text)
    for elsewhere in (str(tmp_path / "outside.yaml"), "../../outside.yaml", "/etc/passwd", "x\0"):
        assert "outside" not in copied(page, text, file=elsewhere)["command"]


def test_a_text_of_no_origin_is_to_be_saved_first(
    page: Page, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(folder)
    text = text_of("tiny-gpt").replace("name: tiny-gpt", "name: pasted")
    assert copied(page, text) == {"command": "zoo build pasted.yaml", "unsaved": "pasted.yaml"}
    assert copied(page, text, preset="../x", weights="/etc") == copied(page, text)
    page.post("save", text=text, file="pasted.yaml")
    told = copied(page, text, file="pasted.yaml")
    assert told == {"command": "zoo build pasted.yaml", "unsaved": ""}
    assert parameters(told["command"]) == 223_616
