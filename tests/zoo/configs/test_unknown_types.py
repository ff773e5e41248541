"""Types that no family reads: what is missing is named, and no type that imports is among them."""

from __future__ import annotations

import re

import pytest
from transformers.models.auto.configuration_auto import CONFIG_MAPPING_NAMES

from tests.zoo.configs.default_configs import NO_DEFAULT, OUTCOMES, outcome_of
from zoo.configs.importing import spec_of_config
from zoo.families.common.config import Config, ConfigError
from zoo.families.common.inexpressible import INEXPRESSIBLE
from zoo.families.registry import MODEL_TYPES

OF_CODE = {"minimax_m3", "nemotron-nas", "bailing_hybrid", "mluke", "supertonic", "modnet", "qwen4_exp_text"}
"""Types that only published code has, or transformers under another class alone."""


def test_no_type_that_imports_is_said_to_lack_something() -> None:
    assert INEXPRESSIBLE.keys() & set(MODEL_TYPES) == set()


def test_every_type_is_one_that_exists() -> None:
    assert INEXPRESSIBLE.keys() - CONFIG_MAPPING_NAMES.keys() <= OF_CODE


def test_enough_types_name_their_missing_part() -> None:
    assert len(INEXPRESSIBLE) >= 130


@pytest.mark.parametrize(
    "model_type", ["deberta", "esm", "layoutlm", "longformer", "sam", "mobilebert", "encodec"]
)
def test_the_missing_part_is_named_and_no_spelling_suggested(model_type: str) -> None:
    with pytest.raises(ConfigError) as caught:
        spec_of_config(Config({"model_type": model_type}, "config.json"), name="x")
    said = str(caught.value)
    assert f"specs cannot express {INEXPRESSIBLE[model_type]}" in said
    assert "Did you mean" not in said


def test_the_parts_are_phrases() -> None:
    for model_type, part in INEXPRESSIBLE.items():
        assert re.match("[a-z]|-?[0-9]|Kimi|Fourier", part), model_type
        assert not part.endswith("."), model_type


@pytest.mark.slow
def test_default_configs_of_these_types_are_refused_for_it() -> None:
    for model_type in INEXPRESSIBLE.keys() & CONFIG_MAPPING_NAMES.keys():
        outcome, refusal = outcome_of(model_type)
        assert outcome in (OUTCOMES["specs cannot express"], NO_DEFAULT), (model_type, refusal)
