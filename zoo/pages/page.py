"""One HTML document with everything in it: nothing is asked of a network, now or later.

The colours are custom properties with a light and a dark value each (``page.css``), so that what is inlined follows the
reader's choice by naming them: ``fill: var(--text)``.
"""

from __future__ import annotations

import json
import re
from html import escape
from importlib.resources import files
from typing import Any

_POLICY = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data:"
"""What a browser lets the document load: its own styles and scripts, and pictures that are within it."""


def page(title: str, body: str, script: str = "", style: str = "") -> str:
    """A document: ``body`` is HTML, ``title`` plain text; ``script`` and ``style`` come after the page's own."""
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{_POLICY}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>{escape(title)}</title>
<link rel="icon" href="data:,">
<style>
{asset("page.css")}{style}</style>
</head>
<body>
<header class="top"><p class="name">{escape(title)}</p>
<button type="button" id="theme" hidden></button></header>
<main>
{body}
</main>
<script>
{within_script(asset("page.js") + script)}</script>
</body>
</html>
"""


def asset(name: str) -> str:
    """The text of a style or script that stands beside this module."""
    return files(__package__).joinpath(name).read_text(encoding="utf-8")


def embedded(data: Any) -> str:
    """Data as a literal for a script: JSON in which nothing ends the script early."""
    return json.dumps(data, separators=(",", ":"), ensure_ascii=False).replace("<", "\\u003c")


def within_script(text: str) -> str:
    """A script whose strings may hold a closing tag: the browser would take that for the end of the script."""
    return re.sub(r"</(?=script)", r"<\\/", text, flags=re.IGNORECASE)
