"""Controls: kinds come with the keys that they need, and steps lead to numbers that work."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from cli.studio.controls import changed, stepped
from cli.studio.typed_spec import TypedSpec
from specs.base import registry
from specs.base.errors import SpecPath
from specs.language.editing import value_at, with_value
from specs.language.preset_files import preset_names
from specs.language.reading import read_text
from tests.cli.studio.conftest import text_of

GPT2 = text_of("gpt2")
ATTENTION: SpecPath = ("decoder", "block", "attention")
FEED_FORWARD: SpecPath = ("decoder", "block", "feed_forward")


@pytest.mark.parametrize("kind", ["multi_head", "grouped_query", "multi_query", "latent"])
def test_every_attention_works_at_once(folder: Path, kind: str) -> None:
    rope = changed(GPT2, ("position", "kind"), "rope", folder)
    typed = TypedSpec.read(changed(rope, (*ATTENTION, "kind"), kind, folder), folder)
    assert typed.model.decoder is not None
    assert typed.model.decoder.block.attention.kind == kind
    assert typed.model.decoder.block.attention.heads == 12


@pytest.mark.parametrize("kind", ["mlp", "gated", "mixture"])
def test_every_feed_forward_keeps_its_width(folder: Path, kind: str) -> None:
    model: Any = TypedSpec.read(changed(GPT2, (*FEED_FORWARD, "kind"), kind, folder), folder).model
    part = model.decoder.block.feed_forward
    assert part.kind == kind
    assert (part.expert if kind == "mixture" else part).hidden == 3072


@pytest.mark.parametrize("kind", [*registry.kinds("norm")])
def test_every_norm_works_at_once(folder: Path, kind: str) -> None:
    if kind != "batch_norm":  # of encoders
        TypedSpec.read(changed(GPT2, ("decoder", "block", "norm", "kind"), kind, folder), folder)


def test_steps_lead_to_the_next_number_that_works(folder: Path) -> None:
    def step(path: SpecPath, value: float, direction: int) -> float | None:
        text = stepped(with_value(GPT2, path, value), path, value, direction, folder)
        if text is None:
            return None
        found: Any = TypedSpec.read(text, folder).document.data
        for key in path:
            found = found[key]
        number: float = found
        return number

    heads = (*ATTENTION, "heads")
    assert [step(heads, value, 1) for value in (12, 13, 768)] == [16, 16, None]
    assert step(heads, 12, -1) == 8
    assert step(("d_model",), 768, 1) == 960
    assert step(("decoder", "layers"), 12, 1) == 13
    assert step(("decoder", "layers"), 1, -1) is None
    assert step((*FEED_FORWARD, "hidden"), 3072, -1) == 3008
    assert step(("decoder", "block", "norm", "eps"), 1e-5, 1) == 2e-5


def test_a_step_starts_from_the_number_in_the_text_or_else_from_the_default(folder: Path) -> None:
    layers, rate = ("decoder", "layers"), (*FEED_FORWARD, "dropout")
    assert "layers: 13" in str(stepped(GPT2, layers, 4, 1, folder))
    assert value_at(read_text(str(stepped(GPT2, rate, 0.25, 1, folder)), "").data, rate) == 0.5


@pytest.mark.slow
@pytest.mark.parametrize("name", preset_names())
def test_the_text_of_every_preset_is_the_preset(folder: Path, name: str) -> None:
    from specs.forms.canonical import complete
    from specs.language.load import load

    assert complete(TypedSpec.read(text_of(name), folder).model) == complete(load(name))
