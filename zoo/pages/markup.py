"""HTML helpers for the sections of a page."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape


def section(key: str, title: str, about: str, body: str) -> str:
    """A section of the page with a heading; ``about``: HTML that describes it."""
    return f'<section id="{key}">\n<h2>{escape(title)}</h2>\n<p class="quiet">{about}</p>\n{body}\n</section>'


def table(
    label: str, header: Sequence[str], rows: Iterable[Sequence[str]], numbers: Sequence[str] = ()
) -> str:
    """A table of HTML cells; ``numbers`` names columns of figures."""
    sides = [' class="number"' if name in numbers else "" for name in header]
    head = "".join(
        f'<th scope="col"{side}>{escape(name)}</th>' for name, side in zip(header, sides, strict=True)
    )
    lines = [
        "<tr>" + "".join(f"<td{side}>{cell}</td>" for cell, side in zip(row, sides, strict=True)) + "</tr>"
        for row in rows
    ]
    body = "\n".join(lines)
    return scrolling(label, f"<table><thead><tr>{head}</tr></thead>\n<tbody>\n{body}\n</tbody></table>")


def scrolling(label: str, inner: str) -> str:
    """A container that scrolls if its content is too wide, by keyboard too."""
    return f'<div class="scroll" tabindex="0" role="region" aria-label="{escape(label)}">{inner}</div>'


def code(text: str) -> str:
    """A name or shape as code."""
    return f"<code>{escape(text)}</code>"


def layers_text(layers: Sequence[int], depth: int) -> str:
    """A list of layers as text: ``layers 0-4, 6-10, ... 24-25``; long patterns are abbreviated."""
    if len(layers) == depth:
        return "the only layer" if depth == 1 else f"all {depth} layers"
    runs: list[list[int]] = []
    for layer in layers:
        if runs and runs[-1][-1] == layer - 1:
            runs[-1].append(layer)
        else:
            runs.append([layer])
    texts = [str(run[0]) if len(run) == 1 else f"{run[0]}\u2013{run[-1]}" for run in runs]
    if len(texts) > 5:
        texts = [*texts[:3], "\u2026", texts[-1]]
    of = f" ({len(layers)} of {depth})" if len(layers) > 1 else f" (of {depth})"
    return ("layers " if len(layers) > 1 else "layer ") + ", ".join(texts) + of
