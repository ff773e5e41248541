"""The rules of layers that share weights, and of transformers beside the stream."""

from __future__ import annotations

import pytest

from specs.base.errors import SpecError
from specs.language.load import load

MAMBA2 = "{kind: mamba2, heads: 4, head_dim: 8, state_size: 8}"
SHARING = "decoder.block.sharing"
SIDE = ("decoder.block.kind=side_transformer", f"decoder.block.mixer={MAMBA2}")
WIDE = "decoder.block.attention.head_dim=16"


@pytest.mark.parametrize(
    ("changes", "rule", "remedy"),
    [
        (
            (f"{SHARING}={{sets: 9}}",),
            "decoder.block.sharing.sets: must be at most 2, the number of layers of this block",
            "Reduce it, or add layers.",
        ),
        ((f"{SHARING}={{sets: 0}}",), "decoder.block.sharing.sets: must be greater than or equal to 1", ""),
        (
            (f"{SHARING}={{adapters: {{rank: 2, feed_forward: false}}}}",),
            "decoder.block.sharing.adapters.feed_forward: must be true if attention is false",
            "Set one of them, or remove adapters.",
        ),
        (
            (
                f"{SHARING}={{adapters: {{rank: 2}}}}",
                "decoder.block.feed_forward={kind: mixture, experts: 4, top_k: 2, expert: {kind: mlp, hidden: 8, "
                "activation: relu}}",
            ),
            "decoder.block.sharing.adapters.feed_forward: must be false unless the block has feed_forward of kind mlp "
            "or gated",
            "Set feed_forward: false, or change the feed_forward of the block.",
        ),
        (
            (
                "position.kind=none",
                "decoder.block.attention=null",
                "decoder.block.feed_forward=null",
                f"decoder.block.mixer={MAMBA2}",
                f"{SHARING}={{}}",
            ),
            "decoder.block.sharing: must not be set in a block without attention and feed_forward",
            "Remove it, or share whole layers with shared: true in layers.",
        ),
        (
            ("decoder.block.kind=side_transformer",),
            "decoder.block.mixer: must be set in a side_transformer block",
            "Add mixer, or use pre_norm.",
        ),
        (
            SIDE,
            "decoder.block.attention.head_dim: must be set, because the attention reads stream and embedding, which "
            "are 128 wide together",
            "Set head_dim; heads that share this width are 32 wide.",
        ),
        (
            (*SIDE, WIDE, "decoder.block.layer_scale=0.1"),
            "decoder.block.layer_scale: must not be set in a side_transformer block",
            "Remove it.",
        ),
        (
            (*SIDE, WIDE, "decoder.block.feed_forward_residual={kind: none}"),
            "decoder.block.feed_forward_residual: must not be set in a side_transformer block",
            "Remove it.",
        ),
        (
            (
                *SIDE,
                "decoder.block.attention={kind: latent, heads: 4, head_dim: 8, rope_dim: 4, value_dim: 8, kv_rank: 8}",
            ),
            "decoder.block.attention.kind: must be able to read the embedding beside the stream",
            "Use multi_head, grouped_query or multi_query.",
        ),
    ],
)
def test_rules(changes: tuple[str, ...], rule: str, remedy: str) -> None:
    with pytest.raises(SpecError) as caught:
        load("tiny-gpt", ["decoder.layers=2", *changes])
    found = [problem.render() for problem in caught.value.problems]
    assert any(rule in each and remedy in each for each in found), found


def test_a_limit_of_steps_may_be_open_above() -> None:
    mixer = "{kind: mamba2, heads: 4, head_dim: 8, state_size: 8, step_limit: {least: 0.01}}"
    changes = ["position.kind=none", "decoder.block.attention=null", f"decoder.block.mixer={mixer}"]
    limit = load("tiny-gpt", changes).decoder.block.mixer.step_limit
    assert (limit.least, limit.most) == (0.01, None)
