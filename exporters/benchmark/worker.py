"""A process that times one model: ``python -m exporters.benchmark.worker``.

It reads requests as lines of JSON and answers each with a line. The first request names the model; ``prepare`` sets
up a workload, and ``time`` runs it for some seconds.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Protocol

from exporters.benchmark.workload import Workload
from specs.base.errors import UserError, reason_of
from zoo.machine.memory import peak_memory

SHORT = 0.1
"""Seconds: shorter calls are preceded by an uncounted one, which warms the caches."""

WARM_UP = 2


class TimedModel(Protocol):
    """A model to time: its provider, the seconds it took to load, and the bytes of its weights."""

    provider: str
    load_seconds: float
    size: int

    def call(self, workload: Workload) -> Callable[[], object]: ...

    def bytes_read(self, workload: Workload) -> int | None: ...


def load(what: dict[str, Any]) -> TimedModel:
    """The subject that a request describes."""
    if what["runtime"] == "onnxruntime":
        from exporters.benchmark.exported_subject import ExportedSubject

        return ExportedSubject(Path(what["path"]), what["provider"], what["threads"])
    from exporters.benchmark.torch_subject import TorchSubject
    from specs.language.load import load as load_spec

    return TorchSubject(
        load_spec(what["path"]),
        what["precision"],
        what["device"],
        what["threads"],
        compiled=what["runtime"] == "compiled",
    )


def timed(call: Callable[[], object], seconds: float) -> list[float]:
    """The seconds of each call, repeated for a given time, or of a single longer call."""
    taken: list[float] = []
    left = seconds
    warm = False
    while left > 0:
        begun = time.perf_counter()
        call()
        took = time.perf_counter() - begun
        if not warm and took < min(SHORT, seconds):
            warm = True
            continue
        warm = True
        taken.append(took)
        left -= took
    return taken


def serve(answer: Callable[[dict[str, Any]], None]) -> None:
    """Answer requests until there are no more."""
    lines = (json.loads(line) for line in sys.stdin)
    subject = load(next(lines))
    answer({"provider": subject.provider, "load_seconds": subject.load_seconds, "size": subject.size})
    call: Callable[[], object] = lambda: None  # noqa: E731
    for request in lines:
        if "prepare" in request:
            workload = Workload(**{**request["prepare"], "lengths": tuple(request["prepare"]["lengths"])})
            call = subject.call(workload)
            for _ in range(WARM_UP):
                call()
            answer({"bytes_read": subject.bytes_read(workload)})
        else:
            answer({"seconds": timed(call, request["time"]), "peak": peak_memory()})


def main() -> None:
    """Serve on standard input and output, with the output of libraries suppressed."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent ends this process
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)

    def answer(data: dict[str, Any]) -> None:
        answers.write(json.dumps(data) + "\n")
        answers.flush()

    try:
        serve(answer)
    except UserError as error:
        answer({"error": reason_of(error)})
    except Exception as error:
        answer({"error": f"{type(error).__name__}: {reason_of(error)}"})


if __name__ == "__main__":
    main()
