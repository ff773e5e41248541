"""Rotary positions along several axes."""

from typing import Annotated

from pydantic import Field

from specs.base.base import OmitDefault, Spec
from specs.base.roles import Role

Pairs = Annotated[int, Field(ge=0, le=2**12)]


class RopeSections(Spec):
    """Rotated pairs by axis: the pairs of the frame, the row and the column of an image's vectors (M-RoPE: Qwen2-VL)."""

    pairs: Annotated[tuple[Pairs, Pairs, Pairs], Field(strict=False), Role.PAIRS_BY_AXIS]
    """Numbers of pairs that rotate with the frame, the row and the column; their sum is half the rotated dimensions (Qwen2-VL:
    [16, 24, 24])."""
    interleaved: Annotated[bool, OmitDefault()] = False
    """Whether the axes take turns from one pair to the next, as long as each has pairs left, with the frame taking all others
    (Qwen3-VL), or have one range of pairs each (Qwen2-VL)."""

    def axes(self) -> tuple[int, ...]:
        """The axis of each pair: 0 for the frame, 1 for the row, 2 for the column."""
        if not self.interleaved:
            return tuple(axis for axis, count in enumerate(self.pairs) for _ in range(count))
        return tuple(i % 3 if i // 3 < self.pairs[i % 3] else 0 for i in range(sum(self.pairs)))
