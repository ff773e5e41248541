"""Fill a model on the meta device with weights."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import torch
from torch import Tensor, nn

from zoo.tensors import weight_tensors
from zoo.weights.source import WeightSource


def materialize(model: nn.Module, source: WeightSource) -> None:
    """Give every parameter and persistent buffer its values, in place; what is shared stays shared.

    A tensor that a source hands over whole and in the right dtype is used as it is, not copied.
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
    """Put tensors in the places of those with these ids; what is shared stays shared."""
    for module in model.modules():
        holders: tuple[dict[str, Any], ...] = (module._parameters, module._buffers)
        for held in holders:
            held.update({leaf: tensors.get(id(tensor), tensor) for leaf, tensor in held.items()})


@torch.no_grad()
def whole(parameter: Tensor, pieces: Iterator[Tensor]) -> Tensor:
    """The pieces of a parameter in its shape and dtype; one piece that is the whole is not copied."""
    first = next(pieces)
    if first.numel() == parameter.numel() and first.dtype == parameter.dtype:
        return first.view(parameter.shape)
    values = torch.empty(parameter.shape, dtype=parameter.dtype, device="cpu")
    flat, end = values.view(-1), 0
    for piece in itertools.chain([first], pieces):
        flat[end : end + piece.numel()] = piece
        end += piece.numel()
    return values
