"""What a model is given to read."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Reading:
    """What is read: token ids, for an encoder with their types where they are not all 0; a second stack's are ``target``."""

    ids: Sequence[int]
    types: Sequence[int] | None = None
    target: Sequence[int] = ()
