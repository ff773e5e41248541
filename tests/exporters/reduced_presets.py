"""The presets, each reduced to a model that exports in a second, without those of the same structure."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

import torch
from pydantic import ValidationError
from safetensors.torch import save_file

from specs.forms.canonical import complete
from specs.language.load import load
from specs.language.preset_files import preset_names
from specs.model.model import Model
from tests.zoo.filled import random_model
from zoo.builder import ZooModel
from zoo.core.reduced import (
    fewer_experts,
    fewer_layers,
    narrowed,
    short_switch_lengths,
    small_inputs,
    small_limits,
    small_tables,
)
from zoo.core.tensors import weight_tensors

RECORDED = Path(__file__).with_name("structures.txt")
"""The presets of different structures; ``make digests`` writes it."""

LEAST_WIDTH = 64
"""Matrices of less than half of this width are not quantized."""

OUTLIER = 30.0
"""How much larger than its neighbours a dimension of the residual stream is in trained models."""


def reduced(spec: Model) -> Model:
    """A narrow model of few layers, tokens and experts that is wired as the spec is."""
    small = small_tables(small_inputs(fewer_layers(spec)))
    shallow = short_switch_lengths(fewer_experts(small_limits(small)))
    for divisor in (64, 32, 16, 8, 4, 2):
        try:
            found = narrowed(shallow, divisor)
        except ValidationError:
            continue
        if found.d_model >= LEAST_WIDTH:
            return found
    return shallow


def structures() -> list[str]:
    """A preset of each structure, as recorded: presets that differ in numbers alone are of one."""
    return RECORDED.read_text("utf-8").splitlines()


@cache
def preset(name: str) -> Model:
    """The spec of a preset, kept: several tables of cases are made of the structures while tests are collected."""
    return load(name)


@cache
def structure(name: str) -> Model:
    """The reduced model of a preset."""
    return reduced(preset(name))


def found_structures() -> list[str]:
    """A preset of each structure: the recorded one while there is one, so that results of earlier runs still are of it."""
    names = preset_names()
    recorded = [name for name in structures() if name in names]
    found: dict[str, str] = {}
    for name in (*recorded, *names):
        found.setdefault(json.dumps(_shape(complete(structure(name))), sort_keys=True), name)
    return sorted(found.values(), key=names.index)


def _shape(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _shape(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_shape(item) for item in value]
    return "number" if isinstance(value, int | float) and not isinstance(value, bool) else value


def filled(spec: Model) -> ZooModel:
    """The model with its random weights."""
    return random_model(spec)


def save_with_outliers(spec: Model, path: Path) -> None:
    """Write weights as training leaves them: a few dimensions of the residual stream are far larger than the others, and
    norms turn some of them down.  The first matrix of an adapter has none: its rows are its rank, and the second one would
    multiply them."""
    generator = torch.Generator().manual_seed(7)
    weights = {}
    for name, tensor in weight_tensors(filled(spec)):
        values = tensor.detach().clone()
        if values.dim() >= 2 and not name.endswith("adapter.down.weight"):
            rows = torch.randint(values.shape[0], (max(1, values.shape[0] // 64),), generator=generator)
            values[rows] *= OUTLIER
        elif "norm" in name:
            values += 0.3 * torch.randn(values.shape, generator=generator)
            values[torch.randint(len(values), (1,), generator=generator)] *= OUTLIER
        weights[name] = values
    save_file(weights, path)
