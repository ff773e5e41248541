"""The rules of layers that reuse keys and values, of values that are keys, and of embeddings of single layers."""

from __future__ import annotations

import pytest

from specs.base.errors import SpecError
from specs.language.load import load

SMALL = "gemma4-e2b-text"
GLOBAL, LOCAL = "decoder.blocks.reusing.attention", "decoder.blocks.local_reusing.attention"
PER_LAYER = "{width: 8, activation: gelu, norm: {kind: rms_norm}}"


@pytest.mark.parametrize(
    ("spec", "changes", "rule"),
    [
        (
            SMALL,
            ["decoder.layers=[{use: local}, {use: reusing}, {use: local_reusing}]"],
            f"{GLOBAL}.reuses_keys_values: requires a layer before it with its own keys and values",
        ),
        (SMALL, [f"{LOCAL}.window=64"], f"{LOCAL}.reuses_keys_values: requires a layer before it"),
        (SMALL, [f"{LOCAL}.position.theta=5.0"], f"{LOCAL}.reuses_keys_values: requires a layer before it"),
        (SMALL, [f"{GLOBAL}.kv_heads=2"], f"{GLOBAL}.reuses_keys_values: requires a layer before it"),
        (
            "gpt2",
            ["decoder.block.attention.reuses_keys_values=true"],
            "decoder.block.attention.reuses_keys_values: requires a layer before it",
        ),
        (
            "bart-base",
            ["decoder.block.cross_attention={kind: multi_head, heads: 12, reuses_keys_values: true}"],
            "decoder.block.cross_attention.reuses_keys_values: must be false, because keys and values are those of the encoder",
        ),
        (
            "deberta-v3-small",
            ["encoder.blocks={b: {attention: {reuses_keys_values: true}}}", "encoder.layers=[{}, {use: b}]"],
            "position.kind: requires a key projection, and a layer that reuses keys and values has none",
        ),
        (
            "siglip-base-16",
            ["image.head.pooling.attention.reuses_keys_values=true"],
            "image.head.pooling.attention.reuses_keys_values: must be false for trained queries, which no layer",
        ),
        (
            "gpt2",
            ["decoder.block.attention.values=keys",
             "decoder.block.attention.bias={query: true, key: false, value: true, output: true}"],
            "decoder.block.attention.bias.value: must equal that of the keys, which are the values",
        ),
        (
            "llama-3.2-1b",
            ["position.scaling={kind: proportional, fraction: 0.01}"],
            "position.scaling.fraction: must leave at least one of 32 pairs that rotates",
        ),
        (
            "gpt2",
            ["decoder.block.feed_forward={kind: side_by_side, branches: {}, output_norm: {kind: none}}"],
            "decoder.block.feed_forward.branches: must be at least two, whose outputs are added",
        ),
        (
            "gemma4-26b-a4b-text",
            ["decoder.block.feed_forward.branches.Ex1={norm: {kind: none}, output_norm: {kind: none}, "
             "feed_forward: {kind: mlp, hidden: 8, activation: relu}}"],
            "decoder.block.feed_forward.branches.Ex1: must have a name of lowercase letters and _",
        ),
        (
            "gemma4-26b-a4b-text",
            ["decoder.block.feed_forward.branches.experts.feed_forward.top_k=129"],
            "decoder.block.feed_forward.branches.experts.feed_forward.top_k: must not exceed experts, which is 128",
        ),
        (
            "gemma4-26b-a4b-text",
            ["decoder.block.feed_forward.branches.experts.feed_forward.router.norm={kind: rms_norm, weight: false, "
             "unit_offset: true}"],
            "decoder.block.feed_forward.branches.experts.feed_forward.router.norm.unit_offset: must be false",
        ),
        (
            "gpt2",
            ["decoder.block.kind=parallel", "decoder.block.low_rank_residual={rank: 4, norm: {kind: none}}"],
            "decoder.block.low_rank_residual: belongs to a block whose first branch has a norm before it",
        ),
        (
            "gpt2",
            ["decoder.altup={streams: 2, norm: {kind: rms_norm, weight: false, unit_offset: true}}"],
            "decoder.altup.norm.unit_offset: must be false in a norm without a weight",
        ),
        (
            "bert-base",
            [f"encoder.block.per_layer_embedding={PER_LAYER}"],
            "encoder.block.per_layer_embedding: belongs to architecture: decoder, whose layers can read its tokens",
        ),
        (
            "llava-1.5-7b",
            [f"decoder.block.per_layer_embedding={PER_LAYER}"],
            "decoder.block.per_layer_embedding: belongs to architecture: decoder, whose layers can read its tokens",
        ),
    ],
)  # fmt: skip
def test_violated_rules_name_the_field(spec: str, changes: list[str], rule: str) -> None:
    with pytest.raises(SpecError) as caught:
        load(spec, changes)
    assert any(rule in problem.render() for problem in caught.value.problems)


def test_each_layer_reuses_the_last_one_of_its_kind_that_has_its_own() -> None:
    spec = load(SMALL)
    assert spec.decoder is not None
    sources = spec.decoder.key_value_sources(spec.d_model)
    assert sources[:15] == [None] * 15
    assert sources[15:20] == [13, 13, 13, 13, 14]


def test_layers_may_take_turns() -> None:
    reusing = "decoder.blocks={again: {attention: {reuses_keys_values: true}}}"
    spec = load("gpt2", [reusing, "decoder.layers=[{pattern: [{}, {use: again}], repeat: 2}]"])
    assert spec.decoder is not None
    assert spec.decoder.key_value_sources(spec.d_model) == [None, 0, None, 2]
