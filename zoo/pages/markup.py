"""HTML helpers for the sections of a page."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from markupsafe import Markup

from zoo.pages.rendering import part


def section(key: str, title: str, about: str, body: str, level: int = 2) -> str:
    """A section of the page with a heading of a level; ``about``: HTML that describes it."""
    return str(part("section", key, title, Markup(about), Markup(body), level))


def table(
    label: str,
    header: Sequence[str],
    rows: Iterable[Sequence[str]],
    numbers: Sequence[str] = (),
    modules: Sequence[tuple[str, str]] = (),
) -> str:
    """A table of HTML cells; ``numbers`` names columns of figures, ``modules`` gives the path and layers of each row."""
    return str(part("table", label, header, [list(map(Markup, row)) for row in rows], numbers, modules))


def scrolling(label: str, inner: str) -> str:
    """A container that scrolls if its content is too wide, by keyboard too."""
    return str(part("scrolling", label, Markup(inner)))


def code(text: str) -> str:
    """A name or shape as code."""
    return str(part("code", text))


def layer_runs(layers: Sequence[int]) -> str:
    """Ascending layers as runs, for scripts: ``0-4,6``."""
    runs: list[list[int]] = []
    for layer in layers:
        if runs and runs[-1][-1] == layer - 1:
            runs[-1].append(layer)
        else:
            runs.append([layer])
    return ",".join(str(run[0]) if len(run) == 1 else f"{run[0]}-{run[-1]}" for run in runs)


def layers_text(layers: Sequence[int], depth: int) -> str:
    """A list of layers as text: ``layers 0-4, 6-10, ... 24-25``; long patterns are abbreviated."""
    if len(layers) == depth:
        return "the only layer" if depth == 1 else f"all {depth} layers"
    texts = layer_runs(layers).replace("-", "\u2013").split(",")
    if len(texts) > 5:
        texts = [*texts[:3], "\u2026", texts[-1]]
    of = f" ({len(layers)} of {depth})" if len(layers) > 1 else f" (of {depth})"
    return ("layers " if len(layers) > 1 else "layer ") + ", ".join(texts) + of
