"""Messages of a failed allocation in each library."""

from __future__ import annotations

import json
import os
import sys

from cli.terminal.exit_status import WRONG_INPUT
from zoo.core.units import byte_text
from zoo.machine.memory import available_memory

_SIGNS = (
    "can't allocate memory",  # torch
    "cannot allocate memory",  # the system
    "failed to map segment",  # its loader
    "can't start new thread",
    "bad_alloc",  # ONNX Runtime
    "failed to allocate memory",
    "returned null without setting an exception",  # Python itself, when it cannot allocate the exception either
)


def is_out_of_memory(error: BaseException) -> bool:
    """Whether an allocation failed: libraries raise their own errors for it, the dynamic loader an ImportError."""
    if isinstance(error, MemoryError):
        return True
    return isinstance(error, Exception) and any(sign in str(error).lower() for sign in _SIGNS)


def out_of_memory() -> str:
    """The message."""
    return (
        f"Out of memory: {byte_text(available_memory())} free.\n"
        "  Free some memory, raise the limit (ulimit -v), use a larger machine, or pass --no-verify or --weights none."
    )


def tell_out_of_memory() -> int:
    """Print the message without loading anything else, and return the exit status."""
    try:
        if "--json" in sys.argv:
            print(json.dumps({"errors": [{"message": out_of_memory()}]}, indent=2))
        else:
            print(out_of_memory(), file=sys.stderr)
    except (MemoryError, ImportError):  # too little memory left to measure it
        os.write(2, b"Out of memory.\n")
    return WRONG_INPUT
