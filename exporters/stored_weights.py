"""The weights of a model as an export holds them: rounded, or as their codes stand for."""

from __future__ import annotations

from collections.abc import Mapping
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
    held, errors = dict(weight_tensors(model)), dict[str, float]()
    sizes = {name: tensor.numel() for name, tensor in held.items()}
    for content, parts in contents(regions.values()).items():
        if not content.names:
            continue
        flat, start = content.restored([_read(path, part) for part in parts]), 0
        for name in content.names:
            values, start = flat[start : start + sizes[name]], start + sizes[name]
            if name not in held:  # stored a second time, in another dtype
                continue
            before = held.pop(name)  # each goes as its successor comes
            after = values.view(before.shape)
            if before.dim() > 1:
                errors[name] = _error(before, after)
            put(model, {id(before): _like(before, after)})
    return errors


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
