"""Builders of plugins."""

from __future__ import annotations

import pytest
from torch import nn

import specs.kinds.attention as spec
import zoo.components
from zoo import registry


def test_builders_of_plugins_come_after_built_in_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    """A plugin may be loaded before a kind is built whose variations its builder replaces."""
    loaded: list[str] = []
    monkeypatch.setattr(zoo.components, "load", loaded.append)
    monkeypatch.setattr(registry, "_variants", {spec.MultiHead: []})
    registry._load_built_in.cache_clear()
    registry.builds(spec.MultiHead, when=lambda spec, context: True)(type("Mine", (nn.Module,), {}))
    assert "attention" in loaded
    registry._load_built_in.cache_clear()
