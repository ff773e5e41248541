"""Parts that read more than the stream: on two processes they compute what they do on one, or are refused by name."""

from __future__ import annotations

import re

import pytest
import torch

import zoo
from specs.base.errors import UserError
from tests.parallel.newest_models import NEWEST
from tests.parallel.processes import on_processes
from tests.parallel.steps import compare_all

WHOLE_STREAM = {
    "reusing": "decoder.blocks.0.per_layer_embedding",
    "several-streams": "decoder.blocks.0.low_rank_residual",
    "conformer": "encoder.blocks.0.first_feed_forward",
    "shared-with-adapters": "decoder.blocks.1.side",
    "deepstack": "deep_connectors",
    "two-streams": "encoder.blocks.0.second_feed_forward",
}
"""The models whose stream cannot be cut by tokens, and the first part that reads more."""


@pytest.mark.slow
@pytest.mark.parametrize("way", ["dp", "tp", "sp"])
def test_two_processes_compute_what_one_does(way: str) -> None:
    names = tuple(name for name in NEWEST if way != "sp" or name not in WHOLE_STREAM)
    on_processes(2, compare_all, names, way, torch.float64, 1e-10)


@pytest.mark.parametrize(("name", "part"), WHOLE_STREAM.items())
def test_streams_that_are_read_whole_are_not_cut_by_tokens(name: str, part: str) -> None:
    plan = zoo.parallel_plan(NEWEST[name])
    plan.tensor_parallel(2)
    with pytest.raises(UserError) as caught:
        plan.tensor_parallel(2, sequence=True)
    assert str(caught.value) == (
        f"{part} reads more than the token at hand, so that the stream cannot be cut by tokens\n"
        "  value: sequence\n  Parallelize without it."
    )


@pytest.mark.parametrize(
    ("name", "degree", "message"),
    [
        ("reusing", 8, "kv_heads (4)"),
        ("several-streams", 8, "kv_heads (4)"),
        ("side-by-side", 8, "kv_heads (4)"),
        ("conformer", 3, "vocab_size (32), heads (4)"),
        ("shared-with-adapters", 16, "heads (8)"),
        ("images", 5, "hidden (24)"),
        ("deepstack", 5, "hidden (24)"),
    ],
)
def test_degrees_that_do_not_fit_are_refused_with_those_that_do(name: str, degree: int, message: str) -> None:
    plan = zoo.parallel_plan(NEWEST[name])
    with pytest.raises(UserError, match=re.escape(message)) as caught:
        plan.check(degree)
    assert f"value: tp={degree}\n  Use tp=1 or 2 or 4." in str(caught.value)


@pytest.mark.parametrize(
    ("name", "cut", "whole"),
    [
        ("reusing", "per_layer_embedding.table", "per_layer_embedding.gate"),
        ("several-streams", "feed_forward.up", "altup.router"),
        ("several-streams", "attention.query", "low_rank_residual.down"),
        ("conformer", "first_feed_forward.up", "convolution.input"),
        ("shared-with-adapters", "attention.query.adapter.up", "side"),
        ("shared-with-adapters", "attention.query", "attention.query.adapter.down"),
        ("images", "feed_forward.up", "attention_norm"),
    ],
)
def test_what_every_process_holds(name: str, cut: str, whole: str) -> None:
    replicated = zoo.parallel_plan(NEWEST[name]).replicated
    blocks = "image.blocks.0" if name == "images" else f"{NEWEST[name].architecture}.blocks.1"
    assert f"{blocks}.{cut}.weight" not in replicated
    assert f"{blocks}.{whole}.weight" in replicated


def test_connectors_of_images_are_cut() -> None:
    cuts = zoo.parallel_plan(NEWEST["deepstack"]).cuts
    for connector in ("connector", "deep_connectors.0"):
        assert (cuts[f"{connector}.up"].kind, cuts[f"{connector}.down"].kind) == ("columns", "rows")


@pytest.mark.slow
def test_plans_for_transformers_hold_in_all_layers() -> None:
    from transformers.models.auto.configuration_auto import CONFIG_MAPPING

    reusing = zoo.parallel_plan("gemma4-e2b-text").hugging_face()
    theirs = CONFIG_MAPPING[reusing["model_type"]].base_model_tp_plan
    layers = {name: style for name, style in reusing["tp_plan"].items() if name.startswith("layers.")}
    assert layers == {name: style for name, style in theirs.items() if "experts" not in name}
    assert reusing["left_out"] == ["decoder.blocks.*.per_layer_embedding"]
    sparse = zoo.parallel_plan("gemma3n-e2b-text").hugging_face()
    assert not any(".mlp." in name for name in sparse["tp_plan"])
    assert "decoder.blocks.*.feed_forward" in sparse["left_out"]
    adapted = zoo.parallel_plan("zamba2-1.2b").hugging_face()
    assert {"decoder.blocks.*.attention", "decoder.blocks.*.feed_forward"} <= {*adapted["left_out"]}
    assert not any("shared_transformer" in name for name in adapted["tp_plan"])
