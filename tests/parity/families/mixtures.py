"""The fields of mixtures of experts, and the rules that they break."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import strategies as st
from transformers import PreTrainedConfig

from tests.parity.families.draws import FLAG
from zoo.configs.importing import spec_of_config
from zoo.families.common.config import Config
from zoo.families.common.config_errors import ConfigError


def draw_experts(data: st.DataObject) -> dict[str, Any]:
    """Any number of experts, and of them for each token."""
    experts = data.draw(st.integers(1, 7), "experts")
    top_k = data.draw(st.integers(1, experts), "top_k")
    return {"num_experts": experts, "num_experts_per_tok": top_k, "norm_topk_prob": FLAG}


def draw_routed(data: st.DataObject, layers: int) -> dict[str, Any]:
    """Any mixture with the fields of DeepSeek-V3, in a number of layers."""
    groups, size = data.draw(st.sampled_from([(1, 5), (2, 3), (4, 2)]), "groups")
    open_groups = data.draw(st.integers(1, groups), "open groups")
    top_k = data.draw(st.integers(1, open_groups * size), "top_k")
    return dict(
        moe_intermediate_size=st.integers(1, 30), n_routed_experts=groups * size, num_experts_per_tok=top_k,
        n_shared_experts=st.integers(1, 3), n_group=groups, topk_group=open_groups, norm_topk_prob=FLAG,
        routed_scaling_factor=st.sampled_from([1.0, 2.5]), first_k_dense_replace=st.integers(0, layers),
    )  # fmt: skip


def breaks_a_rule(config: PreTrainedConfig, changes: dict[str, Any], said: str) -> None:
    """A config with other values is refused for a rule of the language, in its words."""
    data = {**config.to_dict(), **changes}
    with pytest.raises(ConfigError) as caught:
        spec_of_config(Config(data, "config.json"), name="tiny")
    assert str(caught.value).startswith("config.json: ")
    assert said in str(caught.value)
