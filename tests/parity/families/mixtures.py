"""What the tests of the families with mixtures of experts have in common."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from transformers import PreTrainedConfig

from specs.model import Model
from tests.parity.families.harness import check_reference
from tests.parity.reference import build
from zoo.configs.config import Config, ConfigError
from zoo.configs.importing import spec_of_config


def check(model_class: type, config: Any, directory: Any, *, seed: int = 1, **options: Any) -> Model:
    """As the harness has it, with one product for each expert, and with what corrects a choice of experts drawn too."""
    config._experts_implementation = "eager"
    reference = build(model_class, config, seed)
    generator = torch.Generator().manual_seed(seed + 1)
    for name, buffer in reference.named_buffers():
        if name.endswith("e_score_correction_bias"):
            buffer.normal_(0.0, 0.1, generator=generator)
    return check_reference(reference, directory, seed=seed, **options)


def breaks_a_rule(config: PreTrainedConfig, changes: dict[str, Any], said: str) -> None:
    """A config with other values is refused for a rule of the language, in its words."""
    data = {**config.to_dict(), **changes}
    with pytest.raises(ConfigError) as caught:
        spec_of_config(Config(data, "config.json"), name="tiny")
    assert str(caught.value).startswith("config.json describes a model that breaks a rule")
    assert said in str(caught.value)
