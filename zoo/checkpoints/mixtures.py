"""How checkpoints store mixtures whose experts are each an ordinary feed-forward (Qwen, DeepSeek)."""

from __future__ import annotations

from zoo.checkpoints.family import Rule, same
from zoo.checkpoints.transforms import Transposed

_STORED, _FEED_FORWARD = "layers.{layer}.mlp", "decoder.blocks.{layer}.feed_forward"
_EXPERT = f"{_STORED}.experts.{{expert}}"

MIXTURE = (
    same(f"{_STORED}.gate.weight", f"{_FEED_FORWARD}.router.weight"),
    same(f"{_EXPERT}.gate_proj.weight", f"{_FEED_FORWARD}.experts.gate.weight"),
    same(f"{_EXPERT}.up_proj.weight", f"{_FEED_FORWARD}.experts.up.weight"),
    Rule(f"{_EXPERT}.down_proj.weight", (f"{_FEED_FORWARD}.experts.down.weight",), Transposed()),
)
"""The router and the experts."""


def shared(stored: str) -> tuple[Rule, ...]:
    """The feed-forward that every token passes."""
    return tuple(
        same(f"{_STORED}.{stored}.{part}_proj.{leaf}", f"{_FEED_FORWARD}.shared.{part}.{leaf}")
        for part in ("gate", "up", "down")
        for leaf in ("weight", "bias")
    )
