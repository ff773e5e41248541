"""That a config with an option that is not supported is refused, by name."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from transformers import PreTrainedConfig

from zoo.configs.importing import spec_of_config
from zoo.families.common.config import Config
from zoo.families.common.config_errors import ConfigError


def refused(
    model_class: type, config: PreTrainedConfig, change: str | dict[str, Any], *rest: Any, strict: bool = True
) -> None:
    """A config is read, and refused with other values, in words that name the field if there is one.

    ``change`` is a field, and its value comes first in ``rest``; or several fields with their values.  Fields of inner configs
    have their paths.  Strict reading refuses fields of other families' references as well.
    """
    data = config.to_dict()
    data["architectures"] = data["architectures"] or [model_class.__name__]
    spec_of_config(Config(data, "config.json"), name="tiny", strict=strict)
    fields, said = ({change: rest[0]}, (change, *rest[1:])) if isinstance(change, str) else (change, rest)
    for path, value in fields.items():
        data = changed(data, path, value)
    with pytest.raises(ConfigError) as caught:
        spec_of_config(Config(data, "config.json"), name="tiny", strict=strict)
    for words in said:
        assert words in str(caught.value)


def changed(data: dict[str, Any], path: str, value: Any) -> dict[str, Any]:
    """A config with another value at a path such as ``text_config.tie_word_embeddings``."""
    data = copy.deepcopy(data)
    *outer, name = path.split(".")
    inner = data
    for key in outer:
        if inner.get(key) is None:
            inner[key] = {}
        inner = inner[key]
    inner[name] = value
    return data
