"""Exit statuses other than 0, success, and termination by signals."""

FAILED = 1
"""A check or verification failed, or two models differ."""
WRONG_INPUT = 2
"""The input was invalid."""
HUNG_UP = 129
"""The terminal was closed (SIGHUP)."""
INTERRUPTED = 130
"""Ctrl-C."""
READER_LEFT = 141
"""The reader of the output closed it, as ``head`` does (SIGPIPE)."""
TERMINATED = 143
"""The process was terminated (SIGTERM)."""

ASKED: list[int] = []
"""The exit status of every termination signal received."""


class Ended(SystemExit):
    """Raised by a termination signal; distinct from the ``SystemExit`` of a library."""


def end_if_asked() -> None:
    """Raise the exception of a signal again if a library's callback swallowed it (as pydantic's do)."""
    if ASKED:
        raise KeyboardInterrupt if ASKED[0] == INTERRUPTED else Ended(ASKED[0])
