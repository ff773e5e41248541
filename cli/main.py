"""``zoo``, the program."""

from __future__ import annotations

import atexit
import gc
import signal
import sys

INTERRUPTED = 130
"""Exit status: Ctrl-C."""
TERMINATED = 143
"""Exit status: asked to terminate."""


def main() -> None:
    """Run the command line.  A request to terminate ends it as tidily as Ctrl-C does."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(TERMINATED))
    # Starting up is all imports, which make no garbage: a collector that rarely runs saves a fifth of the time.
    gc.set_threshold(200_000)
    atexit.register(gc.freeze)
    try:
        from cli.app import app

        app(prog_name="zoo")
    except (KeyboardInterrupt, SystemExit) as end:
        if isinstance(end, SystemExit) and end.code != INTERRUPTED:
            raise
        print("interrupted", file=sys.stderr)
        sys.exit(INTERRUPTED)
