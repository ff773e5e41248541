"""A process of the studio that reads models while the first answers: see :mod:`cli.studio.readings`.

It ends when its input does, that is with the first, even while it reads.
"""

from __future__ import annotations

import gc
import os
import pickle
import signal
import sys
from queue import Empty, SimpleQueue
from threading import Thread
from typing import BinaryIO

from cli.studio.opened_spec import FIRST
from cli.studio.readings import READINGS, Answer
from specs.base.errors import UserError
from specs.language.load import load

_PAUSE, _REST = 0.05, 1.0
"""Seconds without a request after which an edit has all its readings, and after which nobody types."""


def main() -> None:
    """Answer readings; the end of the input ends the process."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C ends the first process, which ends this one
    if hasattr(os, "nice"):
        os.nice(5)  # on a busy machine, the first process goes first: what it counts and draws is shown first
    requests, answers = sys.stdin.buffer, os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what libraries print is no answer
    waiting = SimpleQueue[bytes]()
    Thread(target=_receive, args=(requests, waiting), daemon=True).start()
    for reading in READINGS.values():
        reading(load(FIRST))  # which loads what they need
    gc.collect()
    gc.freeze()
    gc.disable()
    answers.write(b"ready\n")
    answers.flush()
    while True:
        pickle.dump(_answer(_next(waiting)), answers)
        answers.flush()


def _receive(requests: BinaryIO, waiting: SimpleQueue[bytes]) -> None:
    """Put the requests into a queue.  The end of the input, or of half a request, ends the process, whatever it reads."""
    try:
        while True:
            waiting.put(pickle.load(requests))
    finally:
        os._exit(0)


def _next(waiting: SimpleQueue[bytes]) -> bytes:
    """The next request. Garbage is collected while none comes: that of one edit after it, and that of kept results in a rest."""
    for seconds, generation in ((_PAUSE, 0), (_REST, 2)):
        try:
            return waiting.get(timeout=seconds)
        except Empty:
            gc.collect(generation)
    return waiting.get()


def _answer(asked: bytes) -> Answer:
    try:
        name, args = pickle.loads(asked)
        return "result", READINGS[name](*args)
    except UserError as error:
        return "refused", error.text
    except Exception:
        return "failed", None  # the first process meets the same error, and reports it


if __name__ == "__main__":
    main()
