"""Values that configs state in unusual ways are read as the reference reads them: nulls, other names, two fields for one thing."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from specs.model import Model
from tests.parity.families.as_stated import (
    CONFIGS,
    booleans_of,
    difference_from,
    reference_of,
    spec_of,
    stated,
)
from zoo.families.common.config import ConfigError

TOLERANCE = 2e-5
NULL_IS_TRUE = [("t5", "tie_word_embeddings"), ("umt5", "tie_word_embeddings")]
"""Fields that the reference compares with false."""


def _read(model_type: str, path: str, value: bool | None) -> Model | str:
    """The spec of a config, or why it is refused."""
    try:
        return spec_of(stated(model_type, path, value))
    except ConfigError as error:
        return str(error).split("\n")[0].replace("null", "false")


@pytest.mark.parametrize("model_type", CONFIGS)
def test_a_null_boolean_is_false(model_type: str) -> None:
    for path in booleans_of(CONFIGS[model_type]):
        meant = (model_type, path) in NULL_IS_TRUE
        assert _read(model_type, path, None) == _read(model_type, path, meant), path


@pytest.mark.slow
@pytest.mark.parametrize("model_type", CONFIGS)
def test_a_null_boolean_is_what_it_is_for_the_reference(model_type: str, tmp_path: Path) -> None:
    for number, path in enumerate(booleans_of(CONFIGS[model_type])):
        directory = tmp_path / str(number)
        directory.mkdir()
        try:
            reference = reference_of(stated(model_type, path, None), directory)
        except Exception:  # some fields may not be null
            continue
        try:
            found = difference_from(reference, directory)
        except ConfigError:  # an option that is not supported
            continue
        assert found <= TOLERANCE, path
