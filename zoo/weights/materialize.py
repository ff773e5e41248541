"""Filling a model on the meta device with weights."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import torch
from torch import Tensor, nn

from zoo.core.tensors import weight_tensors
from zoo.weights.source import WeightSource


def materialize(model: nn.Module, source: WeightSource) -> None:
    """Give every parameter and persistent buffer its values, in place; shared tensors stay shared.

    A tensor that a source returns whole and in the right dtype is used directly, not copied.
    """

    def filled(named: tuple[str, Tensor]) -> tuple[int, Tensor]:
        name, tensor = named
        values = whole(tensor, source.pieces(name))
        if isinstance(tensor, nn.Parameter):
            values = nn.Parameter(values, tensor.requires_grad)
        return id(tensor), values

    # Drawing and converting leave the interpreter free, so threads do help.
    with ThreadPoolExecutor() as threads:
        put(model, dict(threads.map(filled, weight_tensors(model))))


def put(model: nn.Module, tensors: Mapping[int, Tensor]) -> None:
    """Replace the tensors with these ids; shared tensors stay shared."""
    for module in model.modules():
        holders: tuple[dict[str, Any], ...] = (module._parameters, module._buffers)
        for held in holders:
            held.update({leaf: tensors.get(id(tensor), tensor) for leaf, tensor in held.items()})


@torch.no_grad()
def whole(parameter: Tensor, pieces: Iterator[Tensor]) -> Tensor:
    """The pieces of a parameter in its shape and dtype; a single whole piece is not copied."""
    first = next(pieces)
    if first.numel() == parameter.numel() and first.dtype == parameter.dtype:
        return first.view(parameter.shape)
    values = torch.empty(parameter.shape, dtype=parameter.dtype, device="cpu")
    flat, end = values.view(-1), 0
    for piece in itertools.chain([first], pieces):
        flat[end : end + piece.numel()] = piece
        end += piece.numel()
    return values
