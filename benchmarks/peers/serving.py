"""A worker of a peer, as ``exporters/benchmark/worker.py`` is one of ours: lines of JSON in and out, no import but Python's."""

import json
import os
import sys
import time
from collections.abc import Callable
from typing import Any

Call = Callable[[], object]
Work = dict[str, Any]


def serve(load: Callable[[str, int], Callable[[Work], Callable[[], Call]]]) -> None:
    """Answer requests until there are no more.

    ``load`` takes a directory and a number of threads, what it gives takes a workload and makes it ready, and what that
    gives begins a round: it returns the call that is timed.
    """
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what libraries print goes elsewhere

    def answer(data: Work) -> None:
        answers.write(json.dumps(data) + "\n")
        answers.flush()

    try:
        requests = (json.loads(line) for line in sys.stdin)
        first = next(requests)
        prepare = load(first["path"], first["threads"])
        answer({})
        begin: Callable[[], Call] = lambda: lambda: None  # noqa: E731
        for request in requests:
            if "prepare" in request:
                begin = prepare(request["prepare"])
                begin()()
                answer({})
            else:
                answer({"seconds": timed(begin(), request["time"])})
    except Exception as error:
        answer({"error": f"{type(error).__name__}: {error}"})


def timed(call: Call, seconds: float) -> list[float]:
    """The seconds that each call took, of calls for so long, after one that does not count where calls are short."""
    taken: list[float] = []
    warm = False
    while not taken or sum(taken) < seconds:
        begun = time.perf_counter()
        call()
        took = time.perf_counter() - begun
        if warm or took > seconds / 10:
            taken.append(took)
        warm = True
    return taken
