"""A process of the studio that reads models while the first answers: see :mod:`cli.studio.readings`.

It ends when its input does, that is with the first.
"""

from __future__ import annotations

import gc
import os
import pickle
import signal
import sys

from cli.studio.opened_spec import FIRST
from cli.studio.readings import READINGS, Answer
from specs.base.errors import UserError
from specs.language.load import load


def main() -> None:
    """Answer readings until the input ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C ends the first process, which ends this one
    if hasattr(os, "nice"):
        os.nice(5)  # on a busy machine, the first process goes first: what it counts and draws is shown first
    requests, answers = sys.stdin.buffer, os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what libraries print is no answer
    for reading in READINGS.values():
        reading(load(FIRST))  # which loads what they need
    gc.freeze()
    answers.write(b"ready\n")
    answers.flush()
    while True:
        try:
            asked = pickle.load(requests)
        except EOFError:
            return
        pickle.dump(_answer(asked), answers)
        answers.flush()
        gc.collect(0)  # while nothing is asked


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
