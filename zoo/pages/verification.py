"""The proof that an exported directory carries: how far its graphs were from the PyTorch model."""

from __future__ import annotations

from collections.abc import Mapping
from html import escape
from typing import Any

from zoo.pages.markup import section, table


def verification_section(export: Mapping[str, Any]) -> str:
    """The comparisons that ``export.json`` records, or that there were none."""
    verification = export.get("verification")
    about = f"Exported for target {export['target']} in {export['precision']}, weights: {export['weights']}."
    if verification is None:
        return section(
            "verification", "Verification", escape(about), '<p class="bad">It was not verified.</p>'
        )
    about += (
        f" Run: {verification['ran']}, in {verification['runtime']} on {verification['provider']}."
        f" Compared with PyTorch: {verification['subject']}."
    )
    comparisons = verification["comparisons"]
    failed = sum(not each["passed"] for each in comparisons)
    verdict = f"{len(comparisons) - failed} of {len(comparisons)} comparisons passed"
    rows = [
        [
            escape(each["case"]),
            f"<code>{escape(each['shape'])}</code>",
            f"<code>{escape(each['output'])}</code>",
            _figure(each["max_abs"]),
            _figure(each["max_rel"]),
            _figure(each["tolerance"]),
            "" if each["top_token"] is None else f"{each['top_token']:.1%}",
            '<span class="good">passed</span>' if each["passed"] else f'<span class="bad">{escape(each["fault"] or "failed")}</span>',
        ]
        for each in comparisons
    ]  # fmt: skip
    header = (
        "case",
        "shape",
        "output",
        "largest difference",
        "relative",
        "allowed",
        "same top token",
        "result",
    )
    body = table("Comparisons", header, rows, header[3:7])
    state = "good" if verification["passed"] else "bad"
    return section(
        "verification", "Verification", escape(about), f'<p class="{state}">{verdict}.</p>\n{body}'
    )


def _figure(value: float | None) -> str:
    return "infinite" if value is None else f"{value:.1e}"
