"""What the tests of the families with mixtures of experts have in common."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from hypothesis import strategies as st
from transformers import PreTrainedConfig

from specs.model.model import Model
from tests.parity.families.harness import check_reference
from tests.parity.reference import build
from zoo.configs.importing import spec_of_config
from zoo.families.common.config import Config, ConfigError


def check(model_class: type, config: Any, directory: Any, *, seed: int = 1, **options: Any) -> Model:
    """As the harness has it, with one product for each expert, and with what corrects a choice of experts drawn too."""
    config._experts_implementation = "eager"
    reference = build(model_class, config, seed)
    generator = torch.Generator().manual_seed(seed + 1)
    for name, buffer in reference.named_buffers():
        if name.endswith(("e_score_correction_bias", "expert_bias")):
            buffer.normal_(0.0, 0.1, generator=generator)
    return check_reference(reference, directory, seed=seed, **options)


def draw_experts(data: st.DataObject) -> dict[str, Any]:
    """Any number of experts, and of them for each token."""
    experts = data.draw(st.integers(1, 7), "experts")
    top_k = data.draw(st.integers(1, experts), "top_k")
    normalize = data.draw(st.booleans(), "normalize")
    return {"num_experts": experts, "num_experts_per_tok": top_k, "norm_topk_prob": normalize}


def draw_routed(data: st.DataObject, layers: int) -> dict[str, Any]:
    """Any mixture with the fields of DeepSeek-V3, in a number of layers."""
    groups, size = data.draw(st.sampled_from([(1, 5), (2, 3), (4, 2)]), "groups")
    open_groups = data.draw(st.integers(1, groups), "open groups")
    top_k = data.draw(st.integers(1, open_groups * size), "top_k")
    return {
        "moe_intermediate_size": data.draw(st.integers(1, 30), "width of an expert"),
        "n_routed_experts": groups * size,
        "num_experts_per_tok": top_k,
        "n_shared_experts": data.draw(st.integers(1, 3), "shared"),
        "n_group": groups,
        "topk_group": open_groups,
        "norm_topk_prob": data.draw(st.booleans(), "normalize"),
        "routed_scaling_factor": data.draw(st.sampled_from([1.0, 2.5]), "scale"),
        "first_k_dense_replace": data.draw(st.integers(0, layers), "dense layers"),
    }


def breaks_a_rule(config: PreTrainedConfig, changes: dict[str, Any], said: str) -> None:
    """A config with other values is refused for a rule of the language, in its words."""
    data = {**config.to_dict(), **changes}
    with pytest.raises(ConfigError) as caught:
        spec_of_config(Config(data, "config.json"), name="tiny")
    assert str(caught.value).startswith("config.json describes a model that breaks a rule")
    assert said in str(caught.value)
