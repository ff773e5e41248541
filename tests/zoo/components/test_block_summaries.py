"""Attention to sums of blocks: what it sees, and how it is shown."""

from __future__ import annotations

from typing import Any

import pytest
import torch

import zoo
from specs.base.errors import UserError
from specs.language.load import load
from specs.model.model import Model
from tests.zoo.drawing.test_drawing import attentions
from tests.zoo.tiny import BLOCK, bert
from zoo.attention_maps.choice import choose
from zoo.builder import assemble
from zoo.checks.shapes import check_shapes
from zoo.components.block_summaries import SummarizingBias
from zoo.drawing.reading import read
from zoo.pages.visibility import sights, visibility_section

SUMMARIES = {"size": 4, "norm": {"kind": "rms_norm"}}


def summing(layers: Any = 1, blocks: Any = None, **attention: Any) -> Model:
    """An encoder whose tokens see themselves and sums of blocks of four."""
    own = {**BLOCK["attention"], "window": 1, "block_summaries": SUMMARIES, **attention}
    stack = {"layers": layers, "block": {**BLOCK, "attention": own}, "blocks": blocks or {}}
    return bert(
        encoder=stack,
        position={"kind": "relative_bias", "buckets": 8, "max_distance": 9},
        context_length=40,
        head={"kind": "none"},
    )


def changed(spec: Model, at: int, length: int) -> list[int]:
    """The tokens whose outputs change with the token at a place."""
    model = zoo.build(spec, "random", seed=3).double().eval()
    ids = torch.arange(length)[None] % 5
    other = ids.clone()
    other[0, at] += 6
    with torch.no_grad():
        first, second = (model(each).last_hidden_state[0] for each in (ids, other))
    return (first - second).abs().amax(-1).gt(1e-9).nonzero()[:, 0].tolist()


def test_tokens_see_themselves_alone_until_a_block_is_full() -> None:
    assert changed(summing(), 1, 3) == [1]
    assert changed(summing(), 1, 4) == [0, 1, 2, 3]


def test_tokens_after_the_last_full_block_belong_to_it() -> None:
    assert changed(summing(), 6, 7) == [*range(7)]


def test_positions_of_single_attentions_have_the_biases_of_blocks_where_some_are_seen() -> None:
    own = {"position": {"kind": "relative_bias", "buckets": 8, "max_distance": 20}}
    plain = {**BLOCK["attention"], **own}
    blocks = {"plain": {**BLOCK, "attention": plain}}
    model = assemble(summing([{"use": "plain"}, {}], blocks, **own))
    first, second = (block.attention.position for block in model.encoder.blocks)
    assert first is second
    assert isinstance(second, SummarizingBias)
    other = {**own["position"], "max_distance": 30}
    blocks = {"plain": {**BLOCK, "attention": {**plain, "position": other}}}
    apart: Any = assemble(summing([{"use": "plain"}, {}], blocks, **own))
    assert not isinstance(apart.encoder.blocks[0].attention.position, SummarizingBias)


def test_drawings_and_pages_name_the_blocks() -> None:
    encoder = attentions(read(load("long-t5-tglobal-base")))[0].details
    assert {"window ±127", "sums of blocks of 16"} <= {*encoder}
    spec = load("long-t5-tglobal-base")
    model = assemble(spec)
    assert [sight.block for sight in sights(model, spec)] == [16, None, None]
    assert "the sums of all full blocks of 16 tokens" in visibility_section(model, spec)


@pytest.mark.slow
def test_shapes_count_blocks() -> None:
    spec = load("long-t5-tglobal-base")
    report = check_shapes(assemble(spec), spec)
    rows = {row.path: row for row in report.modules}
    assert report.passed
    assert rows["encoder.blocks.0.attention.summaries"].outputs == ("B x ceil(S/16) x 768",)
    assert rows["encoder.blocks.0.attention.key"].inputs == ("B x S+ceil(S/16) x 768",)
    assert check_shapes(assemble(summing()), summing()).passed


def test_attention_maps_are_refused() -> None:
    with pytest.raises(UserError) as caught:
        choose(load("long-t5-tglobal-base"))
    assert str(caught.value) == (
        "Layer 0 of the encoder of long-t5-tglobal-base attends to sums of blocks of tokens, which maps of tokens do not have\n"
        "  value: layer 0\n  Choose another stack with stack, or remove block_summaries."
    )
    assert "encoder" not in choose(load("long-t5-tglobal-base"), stacks=["decoder", "cross"]).layers
