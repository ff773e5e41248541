"""Files of ``zoo compare``: curves as a picture or a page, or everything as JSON."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

from cli.options.files import write_own
from cli.tables.compare_tables import NUMBERS, curve_title, difference_lines, figures, headline, warnings
from cli.terminal.curves import letter

if TYPE_CHECKING:
    from zoo.training.comparison import TrainingComparison

SUFFIXES = (".png", ".svg", ".html", ".json")


def write_output(path: Path, comparison: TrainingComparison) -> None:
    """Write a comparison atomically in the format of the file's suffix."""
    kind = path.suffix.lower()
    write_own(path, _content(kind, comparison), kind)


def _content(kind: str, comparison: TrainingComparison) -> bytes:
    if kind == ".json":
        return (json.dumps(comparison.as_dict(), indent=2) + "\n").encode()
    curves = [
        (f"{letter(i)}: {result.label}", comparison.curve(result))
        for i, result in enumerate(comparison.results)
    ]
    guess = (comparison.task.chance, "chance")
    if kind == ".html":
        from zoo.pages.comparison_page import comparison_page

        rows = [[letter(i), result.label, *figures(result)] for i, result in enumerate(comparison.results)]
        notes = [line for line in difference_lines(comparison) if line]
        header = ("", "spec", *NUMBERS)
        title = f"{comparison.task.name}, length {comparison.task.length}"
        return comparison_page(
            title, headline(comparison), header, rows, curves, guess, notes, warnings(comparison)
        ).encode()
    from zoo.pictures.curves import loss_curves
    from zoo.pictures.style import png, svg

    figure = loss_curves(curves, guess, f"{comparison.task.name}: {curve_title(comparison)}")
    return png(figure) if kind == ".png" else svg(figure).encode()
