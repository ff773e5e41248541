"""The context of a mixer that is run alone."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from zoo.components.mixer import MixerContext


def mixer_context(real: Tensor | None = None) -> MixerContext:
    """The context of a mixer that reads neither positions nor the embedding.  real: B T with 1 for real tokens, or None for all."""
    attention: Any = None
    return MixerContext(torch.zeros(1, 1), real, torch.zeros(1), None, attention)
