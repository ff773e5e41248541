"""``zoo``, the program."""

from __future__ import annotations

import atexit
import gc
import sys

INTERRUPTED = 130
"""Exit status: Ctrl-C."""


def main() -> None:
    """Run the command line."""
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
