"""Requests to end: what a signal asks for, once, wherever the program is."""

from __future__ import annotations

from cli.exit_status import INTERRUPTED

ASKED: list[int] = []
"""The exit status of every signal that has asked for the end."""


class Ended(SystemExit):
    """A signal asked for the end; a class of its own, so that nothing takes it for an ``exit()`` of a library's."""


def end_if_asked() -> None:
    """Raise again what a signal raised, where a library's callback has swallowed it (pydantic's do)."""
    if ASKED:
        raise KeyboardInterrupt if ASKED[0] == INTERRUPTED else Ended(ASKED[0])
