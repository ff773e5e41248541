"""The environments of engines, which ``make engines`` makes."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from exporters.verification.engines.find import VARIABLE
from exporters.verification.engines.process import kept_processes

ENVIRONMENTS = Path(__file__).parents[2] / ".engines"


@pytest.fixture(autouse=True)
def _environments(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if request.node.get_closest_marker("engines"):
        request.getfixturevalue("one_process_per_engine")
    if ENVIRONMENTS.is_dir():  # or those that ZOO_ENGINES names
        monkeypatch.setenv(VARIABLE, str(ENVIRONMENTS))


@pytest.fixture(scope="session")
def one_process_per_engine() -> Iterator[None]:
    """Start each engine once for all tests that need engines: most take longer to start than to answer."""
    with kept_processes():
        yield


@pytest.fixture
def new_processes() -> Iterator[None]:
    """Start engines anew for a test, with its settings and environment."""
    with kept_processes():
        yield
