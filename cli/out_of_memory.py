"""What a failed allocation looks like, in every library that may meet one first."""

from __future__ import annotations

import json
import os
import sys

from cli.exit_status import WRONG_INPUT
from zoo.memory import available_memory, readable_bytes

_SIGNS = (
    "can't allocate memory",  # torch
    "cannot allocate memory",  # the system
    "failed to map segment",  # its loader
    "can't start new thread",
    "bad_alloc",  # ONNX Runtime
    "failed to allocate memory",
    "returned null without setting an exception",  # Python itself, where even the error finds no room
)


def is_out_of_memory(error: BaseException) -> bool:
    """Whether an allocation failed: libraries raise errors of their own for that, the system's loader an ImportError."""
    if isinstance(error, MemoryError):
        return True
    return isinstance(error, Exception) and any(sign in str(error).lower() for sign in _SIGNS)


def out_of_memory() -> str:
    """The message."""
    return (
        f"Out of memory: {readable_bytes(available_memory())} are free.\n"
        "  Free some, raise the limit (ulimit -v), run on a larger machine, or pass --no-verify or --weights none."
    )


def tell_out_of_memory() -> int:
    """Tell it where nothing else can be loaded, and give the exit status."""
    try:
        if "--json" in sys.argv:
            print(json.dumps({"errors": [{"message": out_of_memory()}]}, indent=2))
        else:
            print(out_of_memory(), file=sys.stderr)
    except (MemoryError, ImportError):  # there is not even room to count what is free
        os.write(2, b"Out of memory.\n")
    return WRONG_INPUT
