"""The environments of engines, which ``make engines`` makes."""

from __future__ import annotations

from pathlib import Path

import pytest

from exporters.verification.engines.find import VARIABLE

ENVIRONMENTS = Path(__file__).parents[2] / ".engines"


@pytest.fixture(autouse=True)
def _environments(monkeypatch: pytest.MonkeyPatch) -> None:
    if ENVIRONMENTS.is_dir():  # or those that ZOO_ENGINES names
        monkeypatch.setenv(VARIABLE, str(ENVIRONMENTS))
