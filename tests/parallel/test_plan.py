"""The plan of a model, from the tables of its components."""

from __future__ import annotations

import re
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, SequenceParallel

import zoo
from specs.base.errors import UserError
from specs.model.model import Model
from tests.parallel.models import MODELS
from zoo.builder import assemble
from zoo.core.sharding import COLUMNS, Sharding
from zoo.parallel.plan import plan_of


def test_every_built_in_mixer_states_how_it_is_cut() -> None:
    for name, spec in MODELS.items():
        plan = zoo.parallel_plan(spec)
        blocks = [f"{block}.{part}" for block, parts in plan.blocks.items() for part in parts]
        stated = (
            *plan.last,
            *(path.rpartition(".")[0] for path in plan.last),
        )  # a mixture states it of its experts
        assert set(blocks) <= set(stated), name
        assert plan.degrees(8) == [1, 2, 4], name


def test_the_plan_names_the_styles_of_torch() -> None:
    plan = zoo.parallel_plan("llama-3-8b").tensor_parallel(8, sequence=True)
    assert isinstance(plan["decoder.blocks.31.feed_forward.up"], ColwiseParallel)
    assert isinstance(plan["decoder.blocks.31.feed_forward.down"], RowwiseParallel)
    assert isinstance(plan["decoder.blocks.0.attention_norm"], SequenceParallel)


def test_what_no_component_states_is_replicated_and_listed() -> None:
    replicated = zoo.parallel_plan(MODELS["mixture"]).replicated
    assert "decoder.blocks.0.feed_forward.router.weight" in replicated
    assert "decoder.blocks.0.feed_forward.experts.up.weight" not in replicated


def test_a_component_of_others_states_its_own_table() -> None:
    class Wide(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.up = nn.Linear(16, 10)

        def sharding(self) -> Sharding:
            return Sharding({"up": COLUMNS, "nowhere": COLUMNS}, {"width": 10})

        def forward(self, x: Tensor) -> Tensor:
            return self.up(x)

    model: Any = zoo.build(MODELS["decoder"])
    model.decoder.blocks[1].feed_forward = Wide()
    plan = plan_of(model)
    assert plan.cuts["decoder.blocks.1.feed_forward.up"] == COLUMNS
    assert "decoder.blocks.1.feed_forward.nowhere" not in plan.cuts
    assert plan.degrees(8) == [1, 2]


@pytest.mark.parametrize(
    ("name", "degree", "message"),
    [
        ("grouped-query", 8, "kv_heads (4)"),
        ("mixture", 8, "experts (4)"),
        ("decoder", 3, "vocab_size (32), heads (4)"),
        ("mamba", 5, "width (32)"),
    ],
)
def test_degrees_that_do_not_fit_are_refused_with_those_that_do(name: str, degree: int, message: str) -> None:
    plan = zoo.parallel_plan(MODELS[name])
    with pytest.raises(UserError, match=re.escape(message)) as caught:
        plan.tensor_parallel(degree)
    assert f"value: tp={degree}\n  Use tp=1 or 2 or 4." in str(caught.value)


def test_a_vocabulary_that_does_not_fit_can_be_padded() -> None:
    with pytest.raises(UserError, match="pad vocab_size"):
        zoo.parallel_plan("gpt2").check(2)
    zoo.parallel_plan(zoo.load("gpt2", ["vocab_size=50304", "expect={}"])).check(4)


@pytest.mark.slow
@pytest.mark.parametrize("preset", ["llama-3-8b", "qwen3-0.6b", "mistral-7b", "olmo2-7b"])
def test_the_plans_for_transformers_are_its_own(preset: str) -> None:
    from transformers.models.auto.configuration_auto import CONFIG_MAPPING

    plan = zoo.parallel_plan(preset).hugging_face()
    config = CONFIG_MAPPING[plan["model_type"]]
    outside = {"lm_head": "colwise_gather_output", "embed_tokens": "embedding_rowwise"}
    found = {name: style for name, style in plan["tp_plan"].items() if name not in outside}
    assert found == config.base_model_tp_plan
    assert plan["pp_plan"] == config.base_model_pp_plan
    assert not plan["left_out"]


def test_modules_that_a_family_stores_otherwise_are_left_out_and_listed() -> None:
    plan = zoo.parallel_plan("mixtral-8x7b").hugging_face()
    assert plan["left_out"] == ["decoder.blocks.*.feed_forward.experts"]
    assert not any("experts" in name for name in plan["tp_plan"])


def test_the_block_classes_to_wrap() -> None:
    plan = zoo.parallel_plan(MODELS["sinks"])
    assert plan.fsdp["fsdp_transformer_layer_cls_to_wrap"] == "Sandwich"
    assert plan.deepspeed["stage3_leaf_modules"] == ["Sandwich"]


def test_an_expert_elsewhere_adds_nothing() -> None:
    from zoo.functional.expert_products import expert_product

    torch.manual_seed(0)
    x, weight, bias = torch.randn(2, 2, 3), torch.randn(4, 5, 3), torch.randn(4, 5)
    weight.requires_grad_()
    bias.requires_grad_()
    here = expert_product(x, weight, bias, torch.tensor([[0, 4], [4, 2]]))
    every = expert_product(x, weight, bias, torch.tensor([[0, 1], [3, 2]]))
    assert torch.equal(here[[0, 1], [0, 1]], every[[0, 1], [0, 1]])
    assert not here[[0, 1], [1, 0]].any()
    here.sum().backward()
    assert bias.grad.sum(1).tolist() == [5.0, 0.0, 5.0, 0.0]


def _sharing(adapters: str, *changes: str) -> Model:
    sharing = f"decoder.block.sharing={{sets: 1, adapters: {adapters}}}"
    return zoo.load("tiny-gpt", ["head.tie_embeddings=false", "expect={}", sharing, *changes])


def test_layers_with_adapters_are_cut_with_them() -> None:
    plan = zoo.parallel_plan(_sharing("{rank: 2}"))
    assert plan.degrees() == [1, 2, 4]
    up = "decoder.blocks.0.feed_forward.up"
    assert up not in plan.replicated
    assert f"{up}.adapter.down.weight" in plan.replicated
    assert f"{up}.adapter.up.weight" not in plan.replicated


SIDE = (
    "decoder.block.kind=side_transformer",
    "decoder.block.attention.head_dim=32",
    "decoder.block.mixer={kind: mamba2, heads: 4, head_dim: 8, state_size: 8}",
)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            (),
            "blocks.1.attention.query.weight is decoder.blocks.0.attention.query.weight, and stages of a pipeline share no",
        ),
        (
            SIDE,
            "decoder.blocks.0: a stage of a pipeline does not pass the embedding on, which this block reads",
        ),
    ],
)
def test_layers_that_share_weights_or_read_the_embedding_are_no_stages(
    changes: tuple[str, ...], message: str
) -> None:
    from zoo.parallel.stage_limits import check_stages

    model = assemble(_sharing("null", *changes))
    check_stages(model, 1)
    with pytest.raises(UserError, match=re.escape(message)):
        check_stages(model, 2)


def test_layers_that_read_the_values_of_the_first_are_no_stages() -> None:
    from zoo.parallel.stage_limits import check_stages

    model = assemble(MODELS["rwkv7"])
    check_stages(model, 1)
    with pytest.raises(UserError, match=r"decoder\.layers read the values of the first, and stages"):
        check_stages(model, 2)
