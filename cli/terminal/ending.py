"""Termination by signals."""

from __future__ import annotations

from cli.terminal.exit_status import INTERRUPTED

ASKED: list[int] = []
"""The exit status of every termination signal received."""


class Ended(SystemExit):
    """Raised by a termination signal; distinct from the ``SystemExit`` of a library."""


def end_if_asked() -> None:
    """Raise the exception of a signal again if a library's callback swallowed it (as pydantic's do)."""
    if ASKED:
        raise KeyboardInterrupt if ASKED[0] == INTERRUPTED else Ended(ASKED[0])
