"""Garbage collection is paused and resumed."""

from __future__ import annotations

import gc

import pytest

from zoo.core.collector import collector_paused


@collector_paused()
def failing() -> None:
    assert not gc.isenabled()
    raise KeyError


@pytest.mark.parametrize("enabled", [True, False])
def test_collection_is_paused_and_left_as_it_was_after_an_error(enabled: bool) -> None:
    before = gc.isenabled()
    try:
        (gc.enable if enabled else gc.disable)()
        with pytest.raises(KeyError):
            failing()
        assert gc.isenabled() is enabled
    finally:
        (gc.enable if before else gc.disable)()
