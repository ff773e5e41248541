"""Models with weights."""

from __future__ import annotations

from pathlib import Path

import torch

from specs.model.model import Model
from zoo.builder import ZooModel, assemble
from zoo.checkpoints.open_weights import open_weights
from zoo.weights.materialize import materialize


def random_model(spec: Model, seed: int = 0, dtype: torch.dtype = torch.float32) -> ZooModel:
    """A model with random weights, which are drawn in float32."""
    model = assemble(spec, dtype)
    materialize(model, open_weights("random", model, spec, seed=seed))
    return model


def stored_model(spec: Model, weights: Path | str, dtype: torch.dtype = torch.float32) -> ZooModel:
    """A model with the weights of a checkpoint or an export."""
    model = assemble(spec, dtype)
    materialize(model, open_weights(str(weights), model, spec))
    return model
