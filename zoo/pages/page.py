"""A self-contained HTML document: it never uses the network.

Colours are custom properties with a light and a dark value each (``page.css``), so that inlined drawings follow the
reader's colour scheme: ``fill: var(--text)``.
"""

from __future__ import annotations

import json
import re
from html import escape
from importlib.resources import files
from typing import Any

_POLICY = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data:"
"""The content security policy: the document's own styles, scripts and inlined pictures."""


def page(title: str, body: str, script: str = "", style: str = "", name: str | None = None) -> str:
    """A document: ``body`` is HTML, ``title`` plain text; ``script`` and ``style`` follow the common ones.

    ``name`` stands at the top of the page, without what its heading says. Default: the title.
    """
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
<header class="top"><p class="name">{escape(name or title)}</p>
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
    """The text of a style sheet or script in this package."""
    return files(__package__).joinpath(name).read_text(encoding="utf-8")


def embedded(data: Any) -> str:
    """Data as a JavaScript literal: JSON that cannot end the script element."""
    return json.dumps(data, separators=(",", ":"), ensure_ascii=False).replace("<", "\\u003c")


def within_script(text: str) -> str:
    """A script whose strings may hold a closing tag: the browser would take that for the end of the script."""
    return re.sub(r"</(?=script)", r"<\\/", text, flags=re.IGNORECASE)
