"""The line of a component's code, below torch and the machinery of zoo, that a call or an error comes from."""

from __future__ import annotations

import functools
import linecache
import sys
import traceback
from pathlib import Path
from types import FrameType

import torch

Line = tuple[str, int]
"""A file and the number of a line."""

_ZOO = Path(__file__).parents[1]
_MACHINERY = tuple(
    f"{path}"
    for path in (
        Path(torch.__file__).parent,
        *(_ZOO / name for name in ("tracing", "ops", "functional", "checks", "models/built_model.py")),
    )
)


@functools.cache
def _is_machinery(filename: str) -> bool:
    return filename.startswith(_MACHINERY)


def calling_line() -> Line | None:
    """The innermost line of the present call."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and _is_machinery(frame.f_code.co_filename):
        frame = frame.f_back
    return None if frame is None else (frame.f_code.co_filename, frame.f_lineno)


def line_of(error: BaseException) -> Line | None:
    """The innermost line that an error passed."""
    frames = [
        frame for frame in traceback.extract_tb(error.__traceback__) if not _is_machinery(frame.filename)
    ]
    return (frames[-1].filename, frames[-1].lineno or 0) if frames else None


def line_text(line: Line | None) -> str:
    """A line with its code, such as ``module.py:12: if x.sum() > 0:``."""
    if line is None:
        return "an unknown line"
    name, number = line
    return f"{name}:{number}: {linecache.getline(name, number).strip()}"
