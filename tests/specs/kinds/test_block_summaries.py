"""Sums of blocks of tokens: what goes with them, and what is refused."""

from __future__ import annotations

from typing import Any

import pytest

from specs.base.errors import SpecError
from specs.language.load import load

SET = "encoder.block.attention.block_summaries="
NORM = "norm: {kind: rms_norm}"

REFUSED = [
    ([f"{SET}{{size: 12, {NORM}}}"], "block_summaries.size: must be a power of 2\n  value: 12\n  Use 8 or 16."),
    ([f"{SET}{{size: 128, {NORM}}}"], "block_summaries.size: must be less than or equal to 64\n  value: 128\n  Use 64 or less."),
    ([f"{SET}{{size: 8, {NORM}}}", "encoder.context_length=5"],
     "block_summaries.size: must not exceed the context_length, which is 5\n  value: 8\n  Use a smaller power of 2."),
    ([f"{SET}{{{NORM}}}", "encoder.causal=true"],
     "encoder.block.attention.block_summaries: belong to an encoder, because a block holds tokens after those that see it"),
    (["decoder.block.attention.block_summaries={norm: {kind: rms_norm}}"],
     "decoder.block.attention.block_summaries: belong to an encoder"),
    ([f"{SET}{{{NORM}}}", "position={kind: rope}"],
     "block_summaries: require a position of kind relative_bias without gates, whose buckets are those of distances in "
     "blocks\n  value: 'rope'\n  Set position: {kind: relative_bias}, or remove them."),
    ([f"{SET}{{{NORM}}}", "encoder.block.attention.position={kind: alibi}"], "value: 'alibi'"),
    ([f"{SET}{{{NORM}}}", "position={kind: relative_bias, gated: true}", "encoder.block.attention.head_dim=null"],
     "require a position of kind relative_bias without gates"),
    ([f"{SET}{{{NORM}}}", "encoder.block.attention.reuses_keys_values=true"],
     "block_summaries: require keys and values of the layer's own\n  value: 16\n  Remove them, or remove reuses_keys_values."),
    ([f"{SET}{{norm: {{kind: layer_norm, unit_offset: true, weight: false}}}}"],
     "block_summaries.norm.unit_offset: must be false in a norm without a weight"),
]  # fmt: skip


@pytest.mark.parametrize(("changes", "expected"), REFUSED)
def test_what_does_not_go_together_is_refused(changes: list[str], expected: str) -> None:
    with pytest.raises(SpecError) as caught:
        load("t5-small", changes)
    assert expected in str(caught.value)


def test_a_position_of_the_attention_alone_may_have_the_biases() -> None:
    spec = load(
        "t5-small",
        [
            f"{SET}{{{NORM}}}",
            "position={kind: none}",
            "encoder.block.attention.position={kind: relative_bias, buckets: 8, max_distance: 20}",
        ],
    )
    encoder: Any = spec.encoder
    assert encoder.block.attention.block_summaries.size == 16
