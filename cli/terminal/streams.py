"""Standard input and output that accept any text."""

from __future__ import annotations

import codecs
import os
import sys

_PLAIN = {
    "\u2500": "-", "\u2501": "-", "\u2502": "|", "\u2514": "+", "\u2508": ".", "\u2578": "-", "\u257a": "-",
    "\u2026": "...", "\u2192": "->", "\u00b7": ".", "\u2022": "*", "\u2212": "-", "\u00d7": "x",
    "\u2013": "-", "\u2014": "-", "\u2018": "'", "\u2019": "'", "\u201c": '"', "\u201d": '"',
}  # fmt: skip
"""ASCII replacements for line-drawing and typographic characters."""


def open_standard_files() -> None:
    """Open the null device for each of stdin, stdout and stderr that is closed.

    Otherwise the next opened file would get their number and receive the output.
    """
    for number, name, mode in ((0, "stdin", "r"), (1, "stdout", "w"), (2, "stderr", "w")):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # takes the lowest free number
            setattr(sys, name, open(number, mode))  # noqa: SIM115


def set_encodings() -> None:
    """Write UTF-8 to files and pipes; terminals get what they can encode, with ASCII replacements or `?` for the rest."""
    codecs.register_error("zoo.plain", _plain)
    for stream in (sys.stdout, sys.stderr):
        if stream.isatty():
            stream.reconfigure(errors="zoo.plain")  # type: ignore[union-attr]
        else:
            stream.reconfigure(encoding="utf-8", errors="zoo.plain")  # type: ignore[union-attr]


def _plain(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeEncodeError):
        raise error
    letters = error.object[error.start : error.end]
    return "".join(_PLAIN.get(letter, "?") for letter in letters), error.end
