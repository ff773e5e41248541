"""A source for the weights that a user names."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import nn

from specs.model.model import Model
from zoo.weights.random import RandomWeights
from zoo.weights.source import WeightSource

if TYPE_CHECKING:
    from zoo.weights.lora import LoraAdapter


def open_weights(
    argument: str,
    model: nn.Module,
    spec: Model,
    *,
    seed: int = 0,
    dtype: torch.dtype = torch.float32,
    adapter: LoraAdapter | None = None,
) -> WeightSource:
    """``random``, drawn with ``seed``, or the weights in a file, an index of shards, a directory, or a
    repository of the Hugging Face hub (org/name).

    ``dtype`` is the dtype of the source's values, and ``adapter`` is merged into them. Names and shapes are checked at once: raises :class:`WeightError` where
    the path does not exist, its weights do not fit the model, or it records another spec.
    """
    if argument == "random":
        return RandomWeights(model, spec, seed, dtype)
    from zoo.checkpoints.open_checkpoint import checkpoint_weights

    return checkpoint_weights(argument, model, spec, dtype, adapter)
