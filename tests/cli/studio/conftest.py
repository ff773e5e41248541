"""A studio of a folder, and what its page asks."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

from cli.studio.nearest import NearestPresets
from cli.studio.opened_spec import opened
from cli.studio.server import Studio
from specs.language.load import read
from specs.language.variant import unclaimed
from specs.language.writing import dump

PORT = 8642


def text_of(preset: str) -> str:
    """The text that the studio opens for a preset."""
    return dump(unclaimed(read(preset)).data)


@dataclass
class Page:
    """What the page knows: the address and how to ask."""

    studio: Studio
    client: TestClient

    def url(self, path: str) -> str:
        return f"/{self.studio.token}/{path}"

    def post(self, name: str, **data: Any) -> Any:
        return self.client.post(self.url(f"api/{name}"), json=data)

    def answer(self, text: str, **data: Any) -> dict[str, Any]:
        """The parts of an answer by name."""
        response = self.post("answer", text=text, **data)
        assert response.status_code == 200, response.text
        lines = [json.loads(line) for line in response.text.splitlines()]
        return {line["part"]: line["data"] for line in lines}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("studio")


@pytest.fixture(scope="module")
def page(folder: Path) -> Iterator[Page]:
    studio = Studio(opened("tiny-gpt"), folder, PORT)
    with TestClient(studio.app, base_url=f"http://127.0.0.1:{PORT}") as client:
        yield Page(studio, client)


@pytest.fixture(autouse=True, scope="session")
def _presets_read_once() -> Iterator[None]:
    """All studios compare with the same presets, which take more than a second to read."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("cli.studio.answer.NearestPresets", cache(NearestPresets))
        yield


@pytest.fixture(autouse=True)
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Fixes are tried however busy the machine is."""
    monkeypatch.setattr("cli.studio.problems._SECONDS", 60.0)


@pytest.fixture
def fixes_of(folder: Path) -> Callable[[str], dict[str, list[str]]]:
    """The labels of the fixes of a wrong text, by the path of the problem."""
    from cli.studio.problems import problem_data
    from cli.studio.typed_spec import TypedSpec
    from specs.base.errors import UserError

    def labels(text: str) -> dict[str, list[str]]:
        try:
            TypedSpec.read(text, folder)
        except UserError as error:
            return {
                problem.get("where", ""): [fix["label"] for fix in problem["fixes"]]
                for problem in problem_data(text, error, folder)
            }
        return {}

    return labels
