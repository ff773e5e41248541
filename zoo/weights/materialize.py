"""Fill a model on the meta device with weights."""

from __future__ import annotations

import torch
from torch import nn

from zoo.weights.source import WeightSource


def materialize(model: nn.Module, source: WeightSource) -> None:
    """Give every parameter its values, in place; parameters that are shared stay shared.

    A tensor that a source hands over whole and in the right dtype is used as it is, not copied.
    """
    with torch.no_grad():
        filled = {}
        for name, parameter in model.named_parameters():
            pieces = source.pieces(name)
            first = next(pieces)
            if first.numel() == parameter.numel() and first.dtype == parameter.dtype:
                values = first.view(parameter.shape)
            else:
                values = torch.empty(parameter.shape, dtype=parameter.dtype, device="cpu")
                flat, end = values.view(-1), first.numel()
                flat[:end] = first
                for piece in pieces:
                    flat[end : end + piece.numel()] = piece
                    end += piece.numel()
            filled[id(parameter)] = nn.Parameter(values)
        for module in model.modules():
            for leaf, parameter in module._parameters.items():
                if parameter is not None:
                    module._parameters[leaf] = filled[id(parameter)]
