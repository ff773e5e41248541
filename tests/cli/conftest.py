"""Where the program runs."""

from __future__ import annotations

from pathlib import Path

import pytest


@pytest.fixture
def empty_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The current directory is an empty one."""
    monkeypatch.chdir(tmp_path)
