"""Entry point of the ``zoo`` program."""

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

from cli.terminal.exit_status import ASKED, HUNG_UP, INTERRUPTED, READER_LEFT, TERMINATED, Ended
from cli.terminal.out_of_memory import is_out_of_memory, tell_out_of_memory
from cli.terminal.streams import open_standard_files, set_encodings

_ENDINGS = {INTERRUPTED: "interrupted", TERMINATED: "terminated", HUNG_UP: "hung up"}
"""The message for the exit status of each signal (128 plus its number)."""


def main() -> None:
    """Run the command line.  Termination signals clean up as Ctrl-C does."""
    open_standard_files()
    set_encodings()
    try:
        _handle_signals()
        # Pydantic warns if a signal arrives during one of its callbacks.
        warnings.filterwarnings("ignore", message="Pydantic serializer warnings")
        _collect_seldom()
        atexit.register(gc.freeze)
        # On a busy machine, threads that spin take processor time from the threads that they wait for.
        os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
        os.environ.setdefault("OPENBLAS_THREAD_TIMEOUT", "4")  # the logarithm of the cycles that NumPy's spin
        # Pydantic searches all installed packages for plugins of its own before it builds its first class.
        os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "__all__")
        from cli.app import app

        app(prog_name="zoo")
    except BaseException as end:
        status = end.code if isinstance(end, SystemExit) else None
        if isinstance(end, KeyboardInterrupt) or status == INTERRUPTED:
            ASKED.append(INTERRUPTED)
        if not ASKED or status == 0:
            _leave(end)
            raise
        # An interrupted library may have raised its own error; the termination still stands.
        print(_ENDINGS[ASKED[0]], file=sys.stderr)
        sys.exit(ASKED[0])
    finally:
        for number in _signals():  # output and cleanup are done: later signals may be ignored
            signal.signal(number, signal.SIG_DFL)


IMPORTED, USUAL = 1_000_000, 200_000
"""The numbers of new objects after which the garbage collector runs: the first time, and later."""


def _collect_seldom() -> None:
    """Let the garbage collector run after imports, which make a million objects and no garbage, and rarely after that: it would take a
    fifth of the start-up time."""

    def after_imports(phase: str, info: dict[str, int]) -> None:
        if gc.get_count()[0] > IMPORTED:
            gc.set_threshold(USUAL)
            gc.callbacks.remove(after_imports)

    gc.set_threshold(IMPORTED)
    gc.callbacks.append(after_imports)


def _leave(end: BaseException) -> None:
    """End the process at once after flushing: deallocating a large model takes half a second."""
    if is_out_of_memory(end):  # raised while importing the program
        end.__traceback__ = end.__context__ = None  # releases the objects in their frames
        end = SystemExit(tell_out_of_memory())
    if not isinstance(end, SystemExit) or not isinstance(end.code, int | None):
        return
    try:
        sys.stdout.flush()
        sys.stderr.flush()
    except BrokenPipeError:
        os._exit(READER_LEFT)
    except (OSError, ValueError):  # the normal exit reports it
        return
    os._exit(end.code or 0)


def _signals() -> list[signal.Signals]:
    """The termination signals, except those that the parent process set to be ignored."""
    numbers = [number for number in signal.Signals if number.name in ("SIGINT", "SIGTERM", "SIGHUP")]
    return [number for number in numbers if signal.getsignal(number) is not signal.SIG_IGN]


def _starts_torch(frame: FrameType | None) -> bool:
    """Whether a module of torch runs its own statements: they call C++ that aborts the process at an exception."""
    return (
        frame is not None
        and frame.f_code.co_name == "<module>"
        and frame.f_globals.get("__name__", "").partition(".")[0] == "torch"
    )


def _handle_signals() -> None:
    """Raise the exception that cleans up.

    Further signals are ignored meanwhile: wrappers often forward signals that the process receives anyway.
    """
    last = float("-inf")

    def again(number: int) -> None:
        timer = threading.Timer(0.05, os.kill, (os.getpid(), number))
        timer.daemon = True
        timer.start()

    def end(number: int, frame: FrameType | None) -> None:
        nonlocal last
        if _starts_torch(frame):
            again(number)
            return
        repeated = time.monotonic() - last < 1
        last = time.monotonic()
        if repeated:
            return
        ASKED.append(128 + number)
        if number == signal.SIGINT:
            raise KeyboardInterrupt
        raise Ended(128 + number)

    def swallowed(error: sys.UnraisableHookArgs) -> None:
        """Schedule the signal again if the exception was raised in a callback that swallows it."""
        nonlocal last
        if not ASKED or not issubclass(error.exc_type, KeyboardInterrupt | SystemExit):
            sys.__unraisablehook__(error)
            return
        last = float("-inf")
        again(ASKED[0] - 128)

    sys.unraisablehook = swallowed
    for number in _signals():
        signal.signal(number, end)
