"""A field of a config that is changed alone changes our model as it changes the reference, or is refused."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from specs.base.errors import UserError
from tests.parity.families.as_stated import CONFIGS, difference_from, reference_of, stated
from tests.parity.families.harness import ReferenceFailsError

TOLERANCE = 1e-4
CHANGES = 12
"""The number of changes that are compared for each family."""

_ACTIVATIONS = ("gelu", "relu", "silu", "gelu_new")
_WITHOUT_EFFECT = ("dropout", "drop_rate", "token_id", "initializer", "layerdrop", "aux_loss", "vocab_size", "ctc_", "mask_",
                   "transformers_version", "output_", "use_cache", "id2label")  # fmt: skip
"""Parts of the names of fields of training, and of those that name tokens."""
COMPARED_APART = {"nllb-moe", "blip"}
"""Families whose tests mend the reference, or call it by names of its own."""


def changes(data: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    """The path of each field, and each other value for it."""
    for name, value in data.items():
        path = f"{prefix}{name}"
        if any(part in name for part in _WITHOUT_EFFECT):
            continue
        match value:
            case dict() if not prefix:
                yield from changes(value, f"{path}.")
            case bool():
                yield path, not value
            case int():
                yield from ((path, other) for other in (value + 1, 2 * value) if other != value)
            case float():
                yield path, 1.7 * value
            case None:
                yield from ((path, other) for other in (True, 2, 0.5))
            case str() if value in _ACTIVATIONS:
                yield from ((path, other) for other in _ACTIVATIONS if other != value)


@pytest.mark.slow
@pytest.mark.parametrize("model_type", sorted(CONFIGS.keys() - COMPARED_APART))
def test_a_changed_field_changes_both_models_alike(model_type: str, tmp_path: Path) -> None:
    every = list(changes(CONFIGS[model_type]))
    random.Random(model_type).shuffle(every)
    compared = 0
    while every and compared < CHANGES:
        path, value = every.pop()
        directory = tmp_path / str(len(every))
        directory.mkdir()
        try:
            reference = reference_of(stated(model_type, path, value), directory)
        except Exception:  # the reference takes no such value
            continue
        try:
            difference = difference_from(reference, directory)
        except (UserError, ReferenceFailsError):
            continue
        assert difference <= TOLERANCE, f"{path}: {value}"
        compared += 1
    assert compared
