"""``zoo``, the program."""

from __future__ import annotations

import atexit
import gc
import os
import signal
import sys
import threading
import time
import warnings
from types import FrameType

from cli.ending import ASKED, Ended
from cli.exit_status import HUNG_UP, INTERRUPTED, READER_LEFT, TERMINATED
from cli.out_of_memory import is_out_of_memory, tell_out_of_memory
from cli.streams import open_standard_files, set_encodings

_ENDINGS = {INTERRUPTED: "interrupted", TERMINATED: "terminated", HUNG_UP: "hung up"}
"""The message for each exit status of a signal: 128 and its number."""


def main() -> None:
    """Run the command line.  A request to terminate ends it as tidily as Ctrl-C does."""
    open_standard_files()
    set_encodings()
    _handle_signals()
    # What pydantic says where a signal comes while one of its callbacks runs.
    warnings.filterwarnings("ignore", message="Pydantic serializer warnings")
    # Starting up is all imports, which make no garbage: a collector that rarely runs saves a fifth of the time.
    gc.set_threshold(200_000)
    atexit.register(gc.freeze)
    # Threads that wait by spinning take the processor from those they wait for wherever others are at work, too.
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
    try:
        from cli.app import app

        app(prog_name="zoo")
    except BaseException as end:
        status = end.code if isinstance(end, SystemExit) else None
        if isinstance(end, KeyboardInterrupt) or status == INTERRUPTED:
            ASKED.append(INTERRUPTED)
        if not ASKED or status == 0:
            _leave(end)
            raise
        # A library that was interrupted may have raised an error of its own: ending was asked for all the same.
        print(_ENDINGS[ASKED[0]], file=sys.stderr)
        sys.exit(ASKED[0])
    finally:
        for number in _signals():  # all is told and tidied: what comes now need not be
            signal.signal(number, signal.SIG_DFL)


def _leave(end: BaseException) -> None:
    """End the process at once where all is told: taking a large model down piece by piece takes half a second."""
    if is_out_of_memory(end):  # while the program itself was loaded
        end.__traceback__ = end.__context__ = None  # and with them what the program held
        end = SystemExit(tell_out_of_memory())
    if not isinstance(end, SystemExit) or not isinstance(end.code, int | None):
        return
    try:
        sys.stdout.flush()
        sys.stderr.flush()
    except BrokenPipeError:
        os._exit(READER_LEFT)
    except (OSError, ValueError):  # the ordinary end tells of it
        return
    os._exit(end.code or 0)


def _signals() -> list[signal.Signals]:
    """The signals that ask for an end, but for those that whoever started the process has it ignore."""
    there = [getattr(signal, name, None) for name in ("SIGINT", "SIGTERM", "SIGHUP")]
    return [number for number in there if number and signal.getsignal(number) is not signal.SIG_IGN]


def _handle_signals() -> None:
    """End by an exception, which tidies up.

    Repeats are ignored while it does: wrappers like to pass signals on that come here anyway.
    """
    last = float("-inf")

    def end(number: int, frame: FrameType | None) -> None:
        nonlocal last
        repeated = time.monotonic() - last < 1
        last = time.monotonic()
        if repeated:
            return
        ASKED.append(128 + number)
        if number == signal.SIGINT:
            raise KeyboardInterrupt
        raise Ended(128 + number)

    def swallowed(error: sys.UnraisableHookArgs) -> None:
        """Ask again, in a moment, where the exception was raised in a callback that cannot pass it on."""
        nonlocal last
        if not ASKED or not issubclass(error.exc_type, KeyboardInterrupt | SystemExit):
            sys.__unraisablehook__(error)
            return
        last = float("-inf")
        again = threading.Timer(0.05, os.kill, (os.getpid(), ASKED[0] - 128))
        again.daemon = True
        again.start()

    for number in _signals():
        signal.signal(number, end)
    sys.unraisablehook = swallowed
