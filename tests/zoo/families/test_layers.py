"""The ways in which configs say which layers differ: what each reads is what it writes."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from specs.language.load import load
from zoo.families.common import fields as f
from zoo.families.common.config import Config
from zoo.families.common.config_errors import ConfigError
from zoo.families.common.layer_lists import all_but_every, read_flags, read_numbers
from zoo.families.common.layers import FixedLayers
from zoo.families.common.mixtures import CountedMixtures
from zoo.families.common.template import FieldContext, UnfitError

CONTEXT = FieldContext.of(load("gpt2"), "decoder")
DEPTHS = st.integers(0, 40)


def config(**data: Any) -> Config:
    return Config(data, "config.json")


@given(every=st.integers(1, 12), depth=DEPTHS)
def test_all_layers_but_every_nth(every: int, depth: int) -> None:
    last = all_but_every(f.Positive("every", default=3))(config(every=every), depth)
    assert [layer for layer, holds in enumerate(last) if not holds] == [*range(every - 1, depth, every)]
    first = all_but_every(every, first=0)(config(), depth)
    assert [layer for layer, holds in enumerate(first) if not holds] == [*range(0, depth, every)]


@given(count=st.integers(0, 12), depth=DEPTHS)
def test_counted_mixtures_are_written_as_a_count_that_gives_the_same_layers(count: int, depth: int) -> None:
    def every(step: int, layers: int) -> list[bool]:
        return [step > 0 and (layer + 1) % step == 0 for layer in range(layers)]

    dense = CountedMixtures({}, f.Int("step", default=4), every)
    where = dense.read(config(step=count), depth)
    assert dense.read(config(**dense.write(where, CONTEXT)), depth) == where


def test_mixtures_in_other_layers_are_not_written() -> None:
    dense = CountedMixtures({}, f.Int("step"), lambda step, depth: [True] * depth)
    with pytest.raises(UnfitError, match="mixtures in other layers than every n-th"):
        dense.write([True, False], CONTEXT)


@given(where=st.lists(st.booleans(), max_size=12))
def test_fixed_layers_are_written_only_where_the_reference_has_them(where: list[bool]) -> None:
    even = FixedLayers("even", {}, lambda layer, depth: layer % 2 == 0, lambda block: True, "odd ones")
    if where == even.read(config(), len(where)):
        assert even.write(where, CONTEXT) == {}
        return
    with pytest.raises(UnfitError, match="odd ones"):
        even.write(where, CONTEXT)


def test_layers_are_listed_by_number_or_by_flags() -> None:
    stated = config(dense=[0, 2], flags=[1, 0, 1])
    assert read_numbers(stated, "dense") == [0, 2]
    assert read_numbers(stated, "absent", [3]) == [3]
    assert read_flags(stated, "flags", 3) == [True, False, True]
    assert read_flags(stated, "absent", 3) is None


@pytest.mark.parametrize(
    ("value", "said"),
    [([0, "1"], "dense: must be a list of layers by number, from 0"), (3, "dense: must be a list")],
)
def test_layers_by_number_are_whole_numbers(value: object, said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        read_numbers(config(dense=value), "dense")


@pytest.mark.parametrize("value", [[1, 0], [1, 0, 2], [1, 0, True]])
def test_flags_are_one_for_each_layer(value: object) -> None:
    with pytest.raises(ConfigError, match="flags: must be 0 or 1 for each of the 3 layers"):
        read_flags(config(flags=value), "flags", 3)
