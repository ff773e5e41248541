"""The lengths at which the costs of recurrences are polynomials."""

from __future__ import annotations

from specs.model import Model
from zoo.reports.polynomial import WHOLE


def tokens(spec: Model) -> int:
    """Two whole chunks if a mixer computes tokens in chunks, which polynomials count as whole ones; else a few tokens."""
    blocks = (block for _, stack in spec.stacks() for block in stack.layer_blocks())
    return 2 * WHOLE if any(block.mixer is not None for block in blocks) else 7
