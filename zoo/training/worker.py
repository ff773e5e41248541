"""A process that trains one model: a pickled run on standard input, one line of JSON per step on standard output."""

from __future__ import annotations

import json
import os
import pickle
import signal
import sys
from typing import Any

import torch

from specs.base.errors import UserError
from zoo.training.run import Moment, deterministic, train


def main() -> None:
    """Train the run.  Output of libraries goes to standard error."""
    signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(128 + number))  # cleans up
    events = os.fdopen(os.dup(1), "w", buffering=1, encoding="utf-8")
    os.dup2(2, 1)

    def tell(**event: Any) -> None:
        print(json.dumps(event), file=events)

    def progress(moment: Moment) -> None:
        tell(step=moment.step, loss=moment.loss)

    run, task, settings, device, threads = pickle.load(sys.stdin.buffer)
    torch.set_num_threads(threads)
    try:
        with deterministic():
            train(run, task, settings, device, progress)
    except UserError as error:
        tell(error=error.text)


if __name__ == "__main__":
    main()
