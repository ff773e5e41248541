"""A process that runs one job after another: one line of JSON on standard input per job, events on standard output."""

from __future__ import annotations

import json
import os
import signal
import sys
from dataclasses import asdict

from exporters.making.job import Job, outcome_of
from zoo.core.progress import Stage


def main() -> None:
    """Run jobs until the input ends. Output of libraries goes to standard error."""
    signal.signal(
        signal.SIGTERM, lambda number, frame: sys.exit(128 + number)
    )  # so that partial output is removed
    events = os.fdopen(os.dup(1), "w", buffering=1, encoding="utf-8")
    os.dup2(2, 1)
    for line in sys.stdin:
        job = Job(**json.loads(line))

        def on_stage(stage: Stage) -> None:
            print(json.dumps({"stage": asdict(stage)}), file=events)

        outcome = outcome_of(job, on_stage)
        print(json.dumps({"outcome": asdict(outcome)}), file=events)


if __name__ == "__main__":
    main()
