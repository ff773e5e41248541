"""The input of a model whose attention is recorded."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class AttentionInput:
    """Token ids; ``types``: token types, if not all 0; ``target``: ids of an encoder-decoder's decoder."""

    ids: Sequence[int]
    types: Sequence[int] | None = None
    target: Sequence[int] = ()
