"""Configs that no program writes: each gives a spec or a message, and soon."""

from __future__ import annotations

import functools
import json
from random import Random
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.parity.reference_fields import config_class_of
from tests.zoo.fuzz.guard import outcome
from tests.zoo.fuzz.mutations import mutated, text_of
from zoo.builder import assemble
from zoo.configs.importing import import_spec, spec_of_config
from zoo.families.common.config import Config
from zoo.families.registry import MODEL_TYPES

pytestmark = pytest.mark.slow

DRAWS = 1500
relaxed = settings(max_examples=DRAWS, deadline=None, suppress_health_check=list(HealthCheck), database=None)


@functools.cache
def config_of(model_type: str) -> dict[str, Any]:
    """The config that the reference writes for a family."""
    data: dict[str, Any] = json.loads(config_class_of(model_type)().to_json_string(use_diff=False))
    return {**data, "model_type": model_type}


@relaxed
@given(model_type=st.sampled_from(sorted(MODEL_TYPES)), seed=st.integers(0, 2**32))
def test_any_field_of_any_family(model_type: str, seed: int) -> None:
    data = mutated(config_of(model_type), Random(seed))

    def read() -> None:
        spec = spec_of_config(Config(data, "config.json"), name="x")
        if sum(stack.depth for _, stack in spec.stacks()) <= 100:
            assemble(spec)

    outcome(read)


@settings(relaxed, max_examples=DRAWS // 4)
@given(model_type=st.sampled_from(sorted(MODEL_TYPES)), seed=st.integers(0, 2**32))
def test_any_file(model_type: str, seed: int, tmp_path_factory: pytest.TempPathFactory) -> None:
    random = Random(seed)
    file = tmp_path_factory.getbasetemp() / "config.json"
    file.write_bytes(text_of(mutated(config_of(model_type), random), random))
    outcome(lambda: import_spec(file))
