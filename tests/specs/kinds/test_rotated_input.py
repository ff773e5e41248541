"""Rotary positions that turn the input of attention: what goes with them, and what is refused."""

from __future__ import annotations

import pytest

from specs.base.errors import SpecError
from specs.language.load import load
from tests.zoo.drawing.test_drawing import attentions
from zoo.drawing.reading import read

ROPE = "position={kind: rope, rotates: input}"

REFUSED = [
    ([ROPE, "decoder.block.attention={kind: latent, heads: 2, kv_rank: 8, head_dim: 4, rope_dim: 2, value_dim: 4}"],
     "position.rotates: must be queries_and_keys in latent attention, and where pairs rotate by axis\n"
     "  value: 'input'\n  Remove it."),
    ([ROPE, "decoder.block.attention.values=keys"],
     "position.rotates: requires keys and values of the layer's own, because values are not rotated\n"
     "  value: 'input'\n  Remove it, or remove values and reuses_keys_values."),
    ([ROPE, "decoder.block.attention.head_dim=50"],
     "position.rotates: requires a head width that divides the input, whose width is 768\n"
     "  value: 50\n  Remove it, or remove head_dim."),
    (["position={kind: rope, rotates: keys}"], "position.rotates: must be 'queries_and_keys' or 'input'"),
]  # fmt: skip


@pytest.mark.parametrize(("changes", "expected"), REFUSED)
def test_what_does_not_go_together_is_refused(changes: list[str], expected: str) -> None:
    with pytest.raises(SpecError) as caught:
        load("gpt2", changes)
    assert expected in str(caught.value)


def test_drawings_tell_that_the_input_is_rotated() -> None:
    found = attentions(read(load("wav2vec2-conformer-rope-large-960h-ft")))[0]
    assert any("of the input" in each for each in _texts(found))


def _texts(part: object) -> list[str]:
    return [str(value) for value in vars(part).values()]
