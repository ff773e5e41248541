"""Every figure of the studio's page says how it was counted."""

from __future__ import annotations

import pytest

from cli.studio.link import fragment_of
from cli.studio.opened_spec import opened
from tests.browser.test_studio import StudioPage, studio

pytestmark = pytest.mark.browser

__all__ = ["studio"]

WORDLESS = """
const shown = [...document.querySelectorAll("#figures .card")].filter((card) => card.offsetParent !== null);
const bare = shown.filter((card) => /[0-9]/.test(card.innerText) && !(card.querySelector(".how") || {}).textContent);
const tables = [...document.querySelectorAll("#figures table")].filter((each) => !each.querySelector("th"));
return [shown.length, bare.map((card) => card.id), tables.map((each) => each.closest(".card").id)];
"""
"""The number of cards, those with a figure and no words on its origin, and those with a table without headings."""


@pytest.mark.parametrize(
    "name", ["gpt2", "bert-base", "t5-small", "deepseek-v3", "clip-vit-b32", "mamba-130m"]
)
def test_every_figure_says_how_it_was_counted(studio: StudioPage, name: str) -> None:
    studio.open(f"#base={name}&opened={name}&{fragment_of(opened(name).text)}")
    cards, bare, headless = studio.browser.run(WORDLESS)
    assert cards >= 7
    assert (bare, headless) == ([], [])
