"""Filling a model on the meta device with weights."""

from __future__ import annotations

import os
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from torch import Tensor, nn

from zoo.core.tensors import weight_tensors
from zoo.weights.source import WeightSource


def materialize(model: nn.Module, source: WeightSource) -> None:
    """Give every parameter and persistent buffer its values, in place; shared tensors stay shared.

    A tensor that a source returns whole and in the right dtype is used directly, not copied.
    """

    def filled(named: tuple[str, Tensor]) -> tuple[int, Tensor]:
        name, tensor = named
        values = source.whole(name, tensor)
        if isinstance(tensor, nn.Parameter):
            values = nn.Parameter(values, tensor.requires_grad)
        return id(tensor), values

    # Reading and drawing leave the interpreter free, so threads do help; each holds temporary tensors.
    with ThreadPoolExecutor(os.cpu_count()) as threads:
        put(model, dict(threads.map(filled, weight_tensors(model))))


def put(model: nn.Module, tensors: Mapping[int, Tensor]) -> None:
    """Replace the tensors with these ids; shared tensors stay shared."""
    for module in model.modules():
        holders: tuple[dict[str, Any], ...] = (module._parameters, module._buffers)
        for held in holders:
            held.update({leaf: tensors.get(id(tensor), tensor) for leaf, tensor in held.items()})
