"""The files of the page, and those that it shares with other pages."""

from __future__ import annotations

from importlib.resources import files

from starlette.responses import PlainTextResponse, Response

from zoo.pages.page import asset

_TYPES = {".html": "text/html", ".css": "text/css", ".js": "text/javascript", ".txt": "text/plain"}
_SHARED = ("page.css", "squarified.js")


def page_names() -> list[str]:
    """The names of all files, which are the only ones that are served."""
    own = files(__package__).joinpath("page")
    return sorted([*(entry.name for entry in own.iterdir() if entry.is_file()), *_SHARED])


def page_file(name: str, nonce: str) -> Response:
    """A file by name."""
    ending = name[name.rfind(".") :]
    if name not in page_names() or ending not in _TYPES:
        return PlainTextResponse("No such file.", 404)
    text = asset(name) if name in _SHARED else files(__package__).joinpath("page", name).read_text("utf-8")
    if ending == ".html":
        text = text.replace("{{nonce}}", nonce)
    return Response(text, media_type=_TYPES[ending])
