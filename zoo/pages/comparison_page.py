"""The page of a comparison: what ``zoo compare ... -o FILE.html`` writes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from html import escape

from zoo.pages.chart import BOTTOM, HEIGHT, LEFT, RIGHT, TOP, WIDTH, Axis, Line, line_chart
from zoo.pages.markup import section, table
from zoo.pages.page import asset, embedded, page

Points = Sequence[tuple[float, float]]


def comparison_page(
    title: str,
    about: str,
    header: Sequence[str],
    rows: Sequence[Sequence[str]],
    curves: Sequence[tuple[str, Points]],
    rule: tuple[float, str],
    notes: Sequence[str],
    warnings: Sequence[str],
) -> str:
    """A document with named loss curves over steps, and a table of text whose numbers begin at the third column."""
    points = [point for _, curve in curves for point in curve]
    right = max((x for x, _ in points), default=1.0)
    top = max([y for _, y in points if math.isfinite(y)] + [rule[0]]) * 1.05
    chart = line_chart(
        "loss in training",
        Axis("step", 0, right),
        Axis("nats per token", 0, top),
        [Line(name, [(x, y) for x, y in curve if math.isfinite(y)]) for name, curve in curves],
        [rule],
    )
    results = "".join(f'<p class="bad"><strong>{escape(line)}</strong></p>' for line in warnings)
    cells = [
        [f'<span class="key key-{index}">{escape(row[0])}</span>', *map(escape, row[1:])]
        for index, row in enumerate(rows)
    ]
    results += table("figures", header, cells, header[2:])
    results += f'<p class="changes">{"<br>".join(map(escape, notes))}</p>'
    sections = section("results", "Results", escape(about), results)
    sections += section(
        "curves",
        "Loss in training",
        "Loss in nats per token, averaged over a few steps. Point at the chart, or move with the arrow keys, to read it.",
        f'<figure tabindex="0">{chart}<figcaption aria-live="polite"></figcaption></figure>',
    )
    body = f'<h1>{escape(title)}</h1>\n<div class="compared">{sections}</div>'
    frame = {"left": LEFT, "right": WIDTH - RIGHT, "top": TOP, "bottom": HEIGHT - BOTTOM, "width": WIDTH}
    data = {
        "frame": frame,
        "last": right,
        "most": top,
        "curves": [[[x, round(y, 4)] for x, y in curve if math.isfinite(y)] for _, curve in curves],
    }
    script = f"const DATA = {embedded(data)};\n{asset('comparison.js')}"
    return page(f"zoo compare: {title}", body, script, asset("comparison.css"), "zoo compare")
