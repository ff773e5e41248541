"""That a config with an option that is not supported is refused, by name."""

from __future__ import annotations

from typing import Any

import pytest
from transformers import PreTrainedConfig

from zoo.configs.importing import spec_of_config
from zoo.families.common.config import Config, ConfigError


def refused(config: PreTrainedConfig, field: str, value: Any, said: str) -> None:
    """A config is read, and refused with one field set to another value, in words that name the field.

    Reading is strict: fields of other families' references are refused as well.
    """
    data = config.to_dict()
    spec_of_config(Config(data, "config.json"), name="tiny", strict=True)
    with pytest.raises(ConfigError) as caught:
        spec_of_config(Config({**data, field: value}, "config.json"), name="tiny", strict=True)
    assert field in str(caught.value)
    assert said in str(caught.value)
