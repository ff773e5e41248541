"""The problems of a text as data for the editor, each with the fixes that work."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from cli.studio.fixes import fixes
from cli.studio.start_values import prepare_start_values
from cli.studio.typed_spec import in_text
from specs.base.errors import Problem, SpecError, UserError, with_flags

_WITH_FIXES = 12
"""The most problems whose fixes are tried."""

_MOST = 100
"""The most problems that are listed."""

_SECONDS = 0.5
"""The time in which fixes are tried: a text that takes long to read has fewer of them, or none."""


def problem_data(text: str, error: UserError, folder: Path) -> list[dict[str, Any]]:
    """The problems of an error; one that a base of the text has is shown where the text extends it."""
    if not isinstance(error, SpecError):
        return [{"message": with_flags(error.text), "path": [], "line": 1, "column": 1, "fixes": []}]
    prepare_start_values()
    data, until = list[dict[str, Any]](), time.monotonic() + _SECONDS
    for index, problem in enumerate(error.problems[:_MOST]):
        tried = index < _WITH_FIXES and len(error.problems) <= _MOST
        data.append(_data(text, problem, error.problems if tried else (), folder, until))
    return data


def _data(
    text: str, problem: Problem, problems: Sequence[Problem], folder: Path, until: float
) -> dict[str, Any]:
    mark = problem.mark
    inside = mark is not None and in_text(mark)
    return {
        **problem.as_dict(with_flags),
        "message": with_flags(problem.rule),
        "where": problem.path_text,
        "path": list(problem.path),
        "line": mark.line if mark is not None and inside else 1,
        "column": mark.column if mark is not None and inside else 1,
        "fixes": [fix.as_dict() for fix in fixes(text, problem, problems, folder, until)] if problems else [],
    }
