"""Fill a model on the meta device with weights."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import torch
from torch import Tensor, nn

from zoo.weights.source import WeightSource


def materialize(model: nn.Module, source: WeightSource) -> None:
    """Give every parameter its values, in place; parameters that are shared stay shared.

    A tensor that a source hands over whole and in the right dtype is used as it is, not copied.
    """

    def filled(named: tuple[str, nn.Parameter]) -> tuple[int, nn.Parameter]:
        name, parameter = named
        return id(parameter), nn.Parameter(_values(parameter, source.pieces(name)))

    # Drawing and converting leave the interpreter free, so threads do help.
    with ThreadPoolExecutor() as threads:
        parameters = dict(threads.map(filled, model.named_parameters()))
    for module in model.modules():
        for leaf, parameter in module._parameters.items():
            if parameter is not None:
                module._parameters[leaf] = parameters[id(parameter)]


@torch.no_grad()
def _values(parameter: Tensor, pieces: Iterator[Tensor]) -> Tensor:
    first = next(pieces)
    if first.numel() == parameter.numel() and first.dtype == parameter.dtype:
        return first.view(parameter.shape)
    values = torch.empty(parameter.shape, dtype=parameter.dtype, device="cpu")
    flat, end = values.view(-1), 0
    for piece in itertools.chain([first], pieces):
        flat[end : end + piece.numel()] = piece
        end += piece.numel()
    return values
