"""The page of a comparison: what ``zoo compare ... -o FILE.html`` writes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from html import escape

from zoo.pages.chart import Axis, Line, line_chart
from zoo.pages.markup import section, table
from zoo.pages.page import asset, page

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
    results += table("figures", header, [list(map(escape, row)) for row in rows], header[2:])
    results += f'<p class="changes">{"<br>".join(map(escape, notes))}</p>'
    body = f"<h1>{escape(title)}</h1>\n" + section("results", "Results", escape(about), results)
    body += section(
        "curves",
        "Loss in training",
        "In nats per token; of a few steps, the mean.",
        f"<figure>{chart}</figure>",
    )
    return page(f"zoo compare: {title}", body, style=asset("comparison.css"))
