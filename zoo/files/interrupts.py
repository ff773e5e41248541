"""Steps that a request to end the process does not cut in two."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

_SIGNALS: list[int] = [number for number in signal.Signals if number.name in ("SIGINT", "SIGTERM", "SIGHUP")]


@contextmanager
def uninterrupted() -> Iterator[None]:
    """Hold back Ctrl-C and requests to terminate until the block ends, then deliver them.

    Python runs signal handlers in the main thread only, so other threads need no protection.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    caught: list[int] = []

    def note(number: int, frame: FrameType | None) -> None:
        caught.append(number)

    handlers = {number: signal.getsignal(number) for number in _SIGNALS}
    held = {number: handler for number, handler in handlers.items() if handler not in (None, signal.SIG_IGN)}
    try:
        for number in held:
            signal.signal(number, note)
        yield
    finally:
        for number, handler in held.items():
            signal.signal(number, handler)
        for number in dict.fromkeys(caught):
            signal.raise_signal(number)
