"""Checkpoints under zoo's own names, with weights that show every part of a model."""

from __future__ import annotations

from pathlib import Path

from specs.model.model import Model
from zoo.builder import assemble
from zoo.checkpoints.converting import CheckpointContents
from zoo.core.initialization import Distribution
from zoo.weights.random import RandomWeights


def stored(spec: Model, directory: Path, seed: int = 3) -> Path:
    """A checkpoint of a spec, whose biases and norms are not those of its recipe."""
    directory.mkdir()
    model = assemble(spec)
    source = RandomWeights(model, spec, seed)
    source._distributions = {
        name: Distribution(std=0.3) if each.constant is None else Distribution(constant=each.constant + 0.1)
        for name, each in source._distributions.items()
    }
    CheckpointContents(spec, model, source, directory).write(directory, dtype="fp32")
    return directory
