"""Every preset that a config can say has as many parameters as the model that transformers makes of that config."""

from __future__ import annotations

import pytest
import torch
import transformers

from specs.catalog import preset_names
from specs.load import load
from zoo.configs.exporting import NoFamilyError, write_config

NO_CONFIG = {
    "bert-base-sinusoidal",
    "gpt3-1.3b",
    "nano-gpt",
    "tiny-gpt",
    "torch-transformer",
    "torch-transformer-big",
    "transformer-base",
    "transformer-big",
}
"""Presets of architectures that no family of transformers has."""


@pytest.mark.parametrize("name", sorted(set(preset_names()) - NO_CONFIG))
def test_the_reference_has_as_many_parameters(name: str) -> None:
    data = write_config(load(name))
    model_class = getattr(transformers, data["architectures"][0])
    with torch.device("meta"):
        model = model_class(model_class.config_class.from_dict(data))
    distinct = {id(parameter): parameter.numel() for parameter in model.parameters()}
    assert sum(distinct.values()) == load(name).expect.parameters


@pytest.mark.parametrize("name", sorted(NO_CONFIG))
def test_what_has_no_config(name: str) -> None:
    with pytest.raises(NoFamilyError):
        write_config(load(name))
