"""Pictures: what is in them, and that equal figures are equal files."""

from __future__ import annotations

import io
import sys
import warnings
from itertools import pairwise
from xml.etree import ElementTree

import numpy as np
import pytest
from PIL import Image

from specs.base.errors import UserError
from tests.thinned import one_in
from zoo.pictures.heat_map import HeatMap, HeatMapGrid, heat_maps
from zoo.pictures.style import DARK, LIGHT, Style, new_figure, png, rgb, svg

STYLES = {"light": LIGHT, "dark": DARK}
TOKENS = ["[CLS]", "the", "$zoo$", "<b>"]


def grid(maps: int = 1, across: int = 4, tokens: list[str] = TOKENS) -> HeatMapGrid:
    """Maps in which each token looks at itself alone, and may not look at those behind it."""
    shares = np.eye(len(tokens), dtype=np.float32)
    shares[np.triu_indices(len(tokens), 1)] = np.nan
    found = [HeatMap(f"head {number}", shares, "0.00 of 1.15 bits") for number in range(maps)]
    return HeatMapGrid("a model", tokens, tokens, found, across)


def pixels(style: Style) -> dict[tuple[int, ...], int]:
    """The colours of a picture of one map, and how many pixels have them."""
    with Image.open(io.BytesIO(png(heat_maps([grid()], style)))) as picture:
        colors = picture.convert("RGB").getcolors(2**24)
        assert colors is not None
        return {color: count for count, color in colors}  # type: ignore[misc]


@one_in(2)
@pytest.mark.parametrize("name", STYLES)
def test_a_cell_has_the_colour_of_its_share(name: str) -> None:
    """Four cells of all, six of nothing, and six in which nothing can be: as the paper."""
    style = STYLES[name]
    found = pixels(style)
    all_, nothing = (found[rgb(style.ramp[at])] for at in (-1, 0))
    assert nothing == pytest.approx(all_ * 6 / 4, rel=0.05)
    assert found[rgb(style.paper)] > nothing


@pytest.mark.parametrize("name", STYLES)
def test_shades_are_distinguishable_by_lightness_alone(name: str) -> None:
    """So they are for those who see no hues, and in print."""
    style = STYLES[name]
    assert (style.shade(0.0), style.shade(1.0)) == (rgb(style.ramp[0]), rgb(style.ramp[-1]))
    assert (style.shade(-1.0), style.shade(2.0)) == (style.shade(0.0), style.shade(1.0))
    lightness = [
        sum(w * c for w, c in zip((0.2126, 0.7152, 0.0722), style.shade(share / 20), strict=True))
        for share in range(21)
    ]
    away = -1 if name == "light" else 1
    assert all(away * (second - first) > 2 for first, second in pairwise(lightness))


def test_equal_figures_are_equal_files() -> None:
    first, second = (heat_maps([grid(), grid(3)]) for _ in range(2))
    assert png(first) == png(second)
    assert svg(first) == svg(second)


def test_svg_keeps_its_text() -> None:
    root = ElementTree.fromstring(svg(heat_maps([grid()])))
    assert root.tag == "{http://www.w3.org/2000/svg}svg"
    words = [each.text or "" for each in root.iter("{http://www.w3.org/2000/svg}text")]
    assert sorted(words) == sorted(["a model", "head 0", "0.00 of 1.15 bits", *TOKENS, *TOKENS])


def test_labels_give_way_where_there_are_many() -> None:
    many = [f"token{number}" for number in range(200)]
    words = svg(heat_maps([grid(maps=6, tokens=many)]))
    assert 50 < words.count(">token") < 200
    assert ">token0<" in words


def test_maps_are_arranged_in_rows() -> None:
    row, column = (heat_maps([grid(maps=4, across=across)]).get_size_inches() for across in (4, 1))
    assert row[0] > 1.5 * row[1]
    assert column[1] > 1.5 * column[0]
    stacked = heat_maps([grid(), grid()]).get_size_inches()
    assert stacked[1] == pytest.approx(2 * heat_maps([grid()]).get_size_inches()[1])


def test_signs_that_the_font_lacks_are_no_warning() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert png(heat_maps([grid(tokens=["東京", "x"])]))


def test_matplotlib_is_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(UserError) as told:
        new_figure(1, 1, LIGHT)
    assert str(told.value) == "Pictures need more libraries\n  Run pip install 'zoo[pictures]'."
