"""Words of kinds: titles, details, and the questions that each slot asks."""

from __future__ import annotations

import importlib
import pkgutil
from typing import Literal

import pytest

import specs.kinds
import zoo.components
import zoo.registry
from specs.base import registry
from specs.base.base import Component
from specs.base.errors import PluginError
from specs.base.words import PartContext, number_text, only_signs
from specs.kinds.feed_forward import Gated
from specs.kinds.norm import LayerNorm, NoNorm
from specs.kinds.position import NoPosition
from specs.kinds.relative_key import RelativeKey
from specs.kinds.rope import Rope


def test_numbers_have_no_superfluous_digits() -> None:
    assert [number_text(number) for number in (50.0, 0.0625, 500_000, 1e12)] == [
        "50", "0.0625", "500,000", "1e+12",
    ]  # fmt: skip


class _Folded(Component):
    kind: Literal["twice_folded"] = "twice_folded"
    width: int = 12_000
    name: str = "a\x1bb"
    bias: bool = True


def test_a_kind_without_words_is_called_by_its_name_and_shows_its_numbers() -> None:
    folded = _Folded()
    assert (folded.heading, folded.brief, folded.is_none) == ("Twice folded", "Twice folded", False)
    assert folded.details(PartContext(8)) == ["width 12,000", "name a\ufffdb"]
    assert folded.why_insensitive(1) == ""


def test_a_part_may_be_called_by_more_than_its_kind() -> None:
    gated = Gated(hidden=96, activation="silu")
    assert (Gated.kind_title(), gated.heading, gated.brief) == (
        "Gated feed-forward",
        "Feed-forward, SwiGLU",
        "SwiGLU 96",
    )
    assert gated.details(PartContext(32, 64)) == ["64 \u2192 2 \u00d7 96 \u2192 32"]


def test_norms_of_narrow_vectors_keep_only_signs() -> None:
    assert (
        LayerNorm().why_insensitive(2)
        == only_signs([2])
        == "a normalized vector of width 2 carries only signs"
    )
    assert (LayerNorm().why_insensitive(3), NoNorm().why_insensitive(1)) == ("", "")
    assert (LayerNorm().is_none, NoNorm().is_none) == (False, True)


@pytest.mark.parametrize(
    ("position", "ordered"),
    [(NoPosition(), False), (Rope(), True), (RelativeKey(before=0, after=0), False), (RelativeKey(after=0), True)],
)  # fmt: skip
def test_a_position_says_whether_it_tells_tokens_apart(position, ordered) -> None:
    assert position.tells_order == ordered


def test_a_kind_must_extend_the_class_of_its_slot() -> None:
    class Mixing(Component):
        kind: Literal["mixing"] = "mixing"

    with pytest.raises(PluginError, match=r"mixer kind 'mixing' must extend specs.kinds.mixer.MixerKind"):
        registry.register("mixer")(Mixing)
    assert "mixing" not in registry.kinds("mixer")


@pytest.mark.filterwarnings("ignore:Field name:UserWarning")
def test_a_field_must_not_have_the_name_of_an_answer() -> None:
    class Wordy(Component):
        kind: Literal["wordy"] = "wordy"
        details: int = 3  # type: ignore[assignment]

    with pytest.raises(
        PluginError, match=r"norm kind 'wordy' has a field named details, which every norm kind answers"
    ):
        registry.register("norm")(Wordy)
    assert "wordy" not in registry.kinds("norm")


def test_the_files_of_both_folders_are_found() -> None:
    loaded = {kind.spec.__module__ for slot in registry.slots() for kind in registry.kinds(slot).values()}
    files = {f"specs.kinds.{module.name}" for module in pkgutil.iter_modules(specs.kinds.__path__)}
    assert {name for name in loaded if name.startswith("specs.kinds.")} <= files


def test_every_builder_is_found_from_the_files_of_its_kind() -> None:
    for built in pkgutil.iter_modules(zoo.components.__path__):
        importlib.import_module(f"zoo.components.{built.name}")
    variants = ((spec, module) for spec, some in zoo.registry._variants.items() for _, module in some)
    for spec, module in (*zoo.registry._builders.items(), *variants, *zoo.registry._extensions):
        package, _, file = module.__module__.rpartition(".")
        if package == "zoo.components":
            kinds = {base.__module__.rpartition(".")[2] for base in spec.__mro__}
            assert any(file in (name, *zoo.components.EXTENSIONS.get(name, ())) for name in kinds), spec
