"""The lengths at which the costs of recurrences, and of sums of blocks, are polynomials."""

from __future__ import annotations

from specs.kinds.block_summaries import BlockSummaries
from specs.model.model import Model
from zoo.core.reduced import validated
from zoo.functional.numbered import TOKENS_PER_LABEL
from zoo.reports.polynomial import WHOLE


def tokens(spec: Model) -> int:
    """Two whole chunks if a mixer computes tokens in chunks, which polynomials count as whole ones, and the tokens of two labels if a
    head finds labels among them; else a few tokens."""
    if spec.head.span_width is not None:
        return 2 * TOKENS_PER_LABEL
    blocks = (block for _, stack in spec.stacks() for block in stack.layer_blocks())
    return 2 * WHOLE if any(block.mixer is not None for block in blocks) else _in_whole_blocks(spec, 7)


def source_tokens(spec: Model) -> int:
    """Two whole blocks of an encoder that sees sums of blocks; else a few tokens."""
    return _in_whole_blocks(spec, 6)


def small_blocks(spec: Model) -> Model:
    """The same with blocks of four tokens: coefficients of polynomials are whole numbers, which they are rounded to."""
    return validated(spec, lambda part: {"size": 4} if isinstance(part, BlockSummaries) else {})


def _in_whole_blocks(spec: Model, few: int) -> int:
    blocks = spec.encoder.layer_blocks() if spec.encoder is not None else ()
    summaries = [getattr(block.attention, "block_summaries", None) for block in blocks]
    return max((2 * each.size for each in summaries if each is not None), default=few)
