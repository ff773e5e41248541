"""The outcomes allowed for a fuzzed call: a result or a message for the user, soon, and without running anything."""

from __future__ import annotations

import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from specs.base.errors import UserError

SECONDS = 20
"""The limits of one call on a machine with other work."""

_FORBIDDEN = ("os.system", "os.exec", "os.posix_spawn", "os.fork", "subprocess.Popen", "socket.connect", "os.remove",
              "os.rename", "shutil.rmtree", "ctypes.dlopen", "webbrowser.open")  # fmt: skip
_watching = False


class HangError(AssertionError):
    """A call that took too long."""


def _audit(event: str, arguments: tuple[Any, ...]) -> None:
    if not (_watching and event in _FORBIDDEN):  # most events of every test after this one
        return
    if not (arguments and "__pycache__" in str(arguments[0])):  # of a module that is imported then
        raise AssertionError(f"{event}{arguments!r} while a file was read")


sys.addaudithook(_audit)  # which cannot be taken away again


@contextmanager
def _watched() -> Iterator[None]:
    global _watching

    def stop(*_: object) -> None:
        raise HangError(f"more than {SECONDS} seconds")

    before = signal.signal(signal.SIGALRM, stop)
    signal.alarm(SECONDS)
    _watching = True
    try:
        yield
    finally:
        _watching = False
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def outcome(call: Callable[[], Any]) -> str:
    """Return the outcome of a call: ``done``, or the message for the user; anything else is raised."""
    with _watched():
        try:
            call()
        except UserError as error:
            text = str(error)
            assert text.strip()
            assert len(text) < 20_000, text[:2000]
            return text
    return "done"
