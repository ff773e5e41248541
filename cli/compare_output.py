"""What ``zoo compare`` writes: curves as pictures, a page, or all of it as data."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from cli.compare_tables import NUMBERS, curve_title, difference_lines, figures, headline, warnings
from cli.curves import letter
from cli.files import check_place, write_whole
from specs.errors import UserError

if TYPE_CHECKING:
    from zoo.training.comparison import Comparison

_BEGINNINGS = {".png": b"\x89png", ".svg": b"<svg", ".html": b"<!doctype html>", ".json": b"{"}
"""What files begin with, in small letters, by what their names end in."""


def check_outputs(paths: Sequence[Path]) -> None:
    """Raise :class:`UserError` for files that do not say what they are to be, or cannot be drawn, before there is work."""
    for path in paths:
        if path.suffix.lower() not in _BEGINNINGS:
            *most, last = _BEGINNINGS
            raise UserError(
                f"--output must end in {', '.join(most)} or {last}\n  value: {str(path)!r}\n"
                f"  {path.with_suffix('.png')} would work"
            )
        check_place(path, _BEGINNINGS[path.suffix.lower()], "--output")
        if path.suffix.lower() in (".png", ".svg"):
            from zoo.pictures.style import LIGHT, new_figure

            new_figure(1, 1, LIGHT)


def write_output(path: Path, found: Comparison) -> None:
    """Write a comparison as what the file's name ends in says, whole or not at all."""
    write_whole(path, _content(path.suffix.lower(), found))


def _content(kind: str, found: Comparison) -> bytes:
    if kind == ".json":
        return (json.dumps(found.as_dict(), indent=2) + "\n").encode()
    curves = [(f"{letter(i)}: {each.label}", found.curve(each)) for i, each in enumerate(found.results)]
    guess = (found.task.chance, "a guess")
    if kind == ".html":
        from zoo.pages.comparison_page import comparison_page

        rows = [[letter(i), each.label, *figures(each)] for i, each in enumerate(found.results)]
        notes = [line for line in difference_lines(found) if line]
        header = ("", "spec", *NUMBERS)
        title = f"{found.task.name}, length {found.task.length}"
        return comparison_page(
            title, headline(found), header, rows, curves, guess, notes, warnings(found)
        ).encode()
    from zoo.pictures.curves import loss_curves
    from zoo.pictures.style import png, svg

    figure = loss_curves(curves, guess, f"{found.task.name}: {curve_title(found)}")
    return png(figure) if kind == ".png" else svg(figure).encode()
