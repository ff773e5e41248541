"""The weights of a model as an export holds them: rounded, or as their codes stand for."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

import torch
from torch import Tensor, nn

from exporters.data_file import Region, contents
from zoo.weights.materialize import put
from zoo.weights.tensors import weight_tensors


def take_stored(model: nn.Module, path: Path, regions: Mapping[str, Region]) -> dict[str, float]:
    """Give a model in float32 the weights that lie in a data file.

    Returns how far each matrix has moved: the root mean square of the difference over its own.
    """
    held = dict(weight_tensors(model))
    values: dict[str, Tensor] = {}
    for content, parts in contents(regions.values()).items():
        if not content.names:
            continue
        flat, start = content.restored([_read(path, part) for part in parts]), 0
        for name in content.names:
            end = start + held[name].numel()
            values[name] = flat[start:end].view(held[name].shape)
            start = end
    errors = {name: _error(held[name], new) for name, new in values.items() if new.dim() > 1}
    put(model, {id(held[name]): _like(held[name], new) for name, new in values.items()})
    return errors


def worst(errors: Iterable[tuple[str, float]]) -> tuple[str, float]:
    """The weight that has moved furthest."""
    return max(errors, key=lambda named: named[1])


def _read(path: Path, region: Region) -> Tensor:
    with path.open("rb") as file:
        file.seek(region.offset)
        return torch.frombuffer(bytearray(file.read(region.length)), dtype=torch.uint8)


def _like(tensor: Tensor, values: Tensor) -> Tensor:
    return nn.Parameter(values, requires_grad=False) if isinstance(tensor, nn.Parameter) else values


def _error(before: Tensor, after: Tensor) -> float:
    size = float(torch.linalg.vector_norm(before))
    distance = float(torch.linalg.vector_norm(after - before))
    return distance / size if size else distance
