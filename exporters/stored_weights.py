"""The weights of a model as an export holds them: rounded, or as their codes stand for."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor, nn

from exporters.data_file import Region, contents
from zoo.tensors import weight_tensors
from zoo.weights.blocks import Codes
from zoo.weights.materialize import put
from zoo.weights.source import WeightSource


def stored_weights(
    model: nn.Module, path: Path, regions: Mapping[str, Region]
) -> Iterator[tuple[str, Tensor]]:
    """The weights of a model that lie in a data file, by name and in its shapes, in float32; each comes once."""
    shapes = {name: tensor.shape for name, tensor in weight_tensors(model)}
    seen = set[str]()
    for content, parts in contents(regions.values()).items():
        if not content.names:
            continue
        flat, start = content.restored([_read(path, part) for part in parts]), 0
        for name in content.names:
            shape = shapes[name]
            values, start = flat[start : start + shape.numel()], start + shape.numel()
            if name not in seen:  # else it is stored a second time, in another dtype
                seen.add(name)
                yield name, values.view(shape)


@dataclass(frozen=True)
class StoredWeight:
    """How a stored matrix differs from the original: the root mean square of the difference over the original's own, and
    its scale, the factor from an original row to the stored one in the mean of the rows, which rounding leaves near 1."""

    error: float
    scale: float


def take_stored(
    model: nn.Module, path: Path, regions: Mapping[str, Region], source: WeightSource
) -> dict[str, StoredWeight]:
    """Give a model in float32 the weights that lie in a data file; returns how each matrix differs from the original,
    or from what its codes stand for where the source has such."""
    held, found = dict(weight_tensors(model)), dict[str, StoredWeight]()
    for name, after in stored_weights(model, path, regions):
        before = held.pop(name)  # each goes as its successor comes
        if before.dim() > 1:
            found[name] = _differs(_meant(before, source.codes(name)), after)
        put(model, {id(before): alike(before, after)})
    return found


def _meant(original: Tensor, codes: Codes | None) -> Tensor:
    if codes is None:
        return original
    return codes.values(original.shape[-1]).view(original.shape)


def _read(path: Path, region: Region) -> Tensor:
    with path.open("rb") as file:
        file.seek(region.offset)
        return torch.frombuffer(bytearray(file.read(region.length)), dtype=torch.uint8)


def alike(tensor: Tensor, values: Tensor) -> Tensor:
    """Values for the place of a tensor: a parameter's as a parameter."""
    return nn.Parameter(values, requires_grad=False) if isinstance(tensor, nn.Parameter) else values


def _differs(before: Tensor, after: Tensor) -> StoredWeight:
    size = float(torch.linalg.vector_norm(before))
    distance = float(torch.linalg.vector_norm(after - before))
    squares = before.flatten(1).square().sum(1)
    scales = (before * after).flatten(1).sum(1) / squares
    scale = float(scales[squares > 0].mean()) if size else 1.0
    return StoredWeight(distance / size if size else distance, scale)
