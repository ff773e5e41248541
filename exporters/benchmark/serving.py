"""The loop of a process that times one model: requests and answers are lines of JSON.

The first request names the model; ``prepare`` sets up a workload, and ``time`` runs it for some seconds. It imports nothing but
Python's library, so that the environments of other tools run it, too.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from collections.abc import Callable
from typing import Any

SHORT = 0.1
"""Seconds: shorter calls are preceded by an uncounted one, which warms the caches."""

Data = dict[str, Any]
"""A request, a workload in it, or an answer."""

Call = Callable[[], object]

Load = Callable[[Data], Callable[[Data], Callable[[], Call]]]
"""Loads the model of the first request. The result prepares a workload, and its result begins a round: it returns the call to time."""


def reason(error: Exception) -> str:
    """The kind of an error, and its message."""
    return f"{type(error).__name__}: {error}"


def serve(load: Load, facts: Callable[[], Data] = dict, reason: Callable[[Exception], str] = reason) -> None:
    """Answer requests on standard input until there are no more; every answer has the current facts of the model.

    Output of libraries is suppressed. An error ends the loop, and its answer is the reason.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent ends this process
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)

    def answer(data: Data) -> None:
        answers.write(json.dumps(data) + "\n")
        answers.flush()

    try:
        requests = (json.loads(line) for line in sys.stdin)
        prepare = load(next(requests))
        answer(facts())
        begin: Callable[[], Call] = lambda: lambda: None  # noqa: E731
        for request in requests:
            if "prepare" in request:
                begin = prepare(request["prepare"])
                begin()()
                answer(facts())
            else:
                seconds = timed(begin(), request["time"])
                answer({"seconds": seconds, **facts()})
    except Exception as error:
        answer({"error": reason(error)})


def timed(call: Call, seconds: float) -> list[float]:
    """The seconds of each call, repeated for a given time, or of a single longer call."""
    taken: list[float] = []
    warm = False
    while sum(taken) < seconds:
        begun = time.perf_counter()
        call()
        took = time.perf_counter() - begun
        if warm or took >= min(SHORT, seconds):
            taken.append(took)
        warm = True
    return taken
