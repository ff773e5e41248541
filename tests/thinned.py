"""Large tables of cases: some run with the quick tests, and all of them with the slow ones."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import pytest

Quick = Callable[[int], bool]
"""Whether the case of a number is among the quick ones."""


def thinned(cases: Iterable[tuple[Any, ...]], ids: Iterable[str], quick: Quick) -> list[Any]:
    """Cases for ``pytest.mark.parametrize``, of which those that are not quick are marked slow."""
    return [
        pytest.param(*case, id=name, marks=() if quick(number) else pytest.mark.slow)
        for number, (case, name) in enumerate(zip(cases, ids, strict=True))
    ]
