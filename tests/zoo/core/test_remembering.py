"""Readings of reduced models are kept for equal specs, and not for those of plugins."""

from __future__ import annotations

import pytest

from specs.base.base import Component
from specs.base.registry import Kind
from specs.kinds.position import PositionKind
from specs.language.load import load
from specs.model.model import Model
from zoo.context import StackContext
from zoo.core.remembering import parts_key, remembered


def test_a_reading_is_taken_once_for_what_it_depends_on() -> None:
    taken = []

    @remembered
    def reading(spec: Model, sizes: int) -> int:
        taken.append(spec.name)
        return len(taken)

    base = load("tiny-gpt")
    assert reading(base, 1) == reading(load("tiny-gpt", ["name=other", "summary=Mine"]), 1) == 1
    assert reading(base, 2) == 2
    assert reading(load("tiny-gpt", ["decoder.block.norm.eps=0.1"]), 1) == 3
    assert reading(base, 1) == 1


def test_only_the_last_readings_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("zoo.core.remembering._KEPT", 2)
    taken = []

    @remembered
    def reading(spec: Model, sizes: int) -> None:
        taken.append(sizes)

    base = load("tiny-gpt")
    for sizes in (1, 2, 1, 3, 1, 2):
        reading(base, sizes)
    assert taken == [1, 2, 3, 2]


def test_a_plugins_component_is_read_each_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("zoo.core.remembering.kind_of", lambda part: Kind(type(part), "a.plugin"))
    taken = []

    @remembered
    def reading(spec: Model) -> None:
        taken.append(spec.name)

    for _ in range(2):
        reading(load("tiny-gpt"))
    assert taken == ["tiny-gpt"] * 2


def test_a_plugins_position_of_the_whole_model_is_read_each_time(monkeypatch: pytest.MonkeyPatch) -> None:
    def kind(part: Component) -> Kind:
        return Kind(type(part), "a.plugin" if isinstance(part, PositionKind) and not part.is_none else None)

    monkeypatch.setattr("zoo.core.remembering.kind_of", kind)
    spec = load("torch-transformer")
    assert spec.encoder is not None
    assert spec.encoder.position is None
    assert parts_key(spec.encoder) is not None
    assert parts_key(spec.encoder, StackContext.of(spec, "encoder")) is None
