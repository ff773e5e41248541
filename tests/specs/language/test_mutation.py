"""A spec, however damaged, is a model or a mistake that is told: never a traceback, and never a long wait."""

from __future__ import annotations

import json
import time
import zlib
from random import Random

import pytest

from specs.base.errors import SpecError
from specs.forms.resolved import resolved
from specs.language.named_blocks import with_named_blocks
from specs.language.reading import read_text
from specs.language.validation import validate
from specs.language.writing import dump
from tests.specs.language.mutation import DRAWS, model_of

SECONDS = 20
"""Processor time, whatever else runs: more than any draw takes, and less than one that never ends."""


def random_of(kind: str, seed: int) -> Random:
    """The source of a draw, which is the same in every run."""
    return Random(zlib.crc32(f"{kind} {seed}".encode()))


def survives(kind: str, seed: int) -> bool:
    """Whether a draw is a model; raises what is neither a model nor a mistake."""
    started = time.process_time()
    model = None
    try:
        model = model_of(DRAWS[kind](random_of(kind, seed)))
    except SpecError as error:
        told = [str(error), json.dumps([problem.as_dict() for problem in error.problems], allow_nan=False)]
        assert all(told)
    assert time.process_time() - started < SECONDS, (
        f"{kind} {seed} took {time.process_time() - started:.0f} s"
    )
    if model is not None:  # what is valid can be shown, and is read back as it was
        assert validate(with_named_blocks(read_text(dump(resolved(model)), "shown.yaml"))) == model
    return model is not None


@pytest.mark.parametrize("kind", DRAWS)
def test_some_damaged_specs(kind: str) -> None:
    found = [survives(kind, seed) for seed in range(40)]
    assert not all(found)


@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("kind", DRAWS)
def test_many_damaged_specs(kind: str) -> None:
    found = [survives(kind, seed) for seed in range(40, 2000)]
    assert 0 < sum(found) < len(found)
