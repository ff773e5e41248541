"""The problems of a text as data for the editor, each with the fixes that work."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from cli.studio.fixes import fixes
from cli.studio.typed_spec import in_text
from specs.base.errors import Problem, SpecError, UserError, with_flags

_WITH_FIXES = 12
"""The most problems whose fixes are tried."""


def problem_data(text: str, error: UserError, folder: Path) -> list[dict[str, Any]]:
    """The problems of an error; one that a base of the text has is shown where the text extends it."""
    if not isinstance(error, SpecError):
        return [{"message": with_flags(error.text), "path": [], "line": 1, "column": 1, "fixes": []}]
    return [
        _data(text, problem, error.problems if index < _WITH_FIXES else (), folder)
        for index, problem in enumerate(error.problems)
    ]


def _data(text: str, problem: Problem, problems: Sequence[Problem], folder: Path) -> dict[str, Any]:
    mark = problem.mark
    inside = mark is not None and in_text(mark)
    return {
        **problem.as_dict(),
        "message": problem.rule,
        "where": problem.path_text,
        "path": list(problem.path),
        "line": mark.line if mark is not None and inside else 1,
        "column": mark.column if mark is not None and inside else 1,
        "fixes": [fix.as_dict() for fix in fixes(text, problem, problems, folder)] if problems else [],
    }
