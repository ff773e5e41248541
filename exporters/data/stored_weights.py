"""The weights of a model as an export stores them, dequantized."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor, nn

from exporters.data.data_file import Region, contents, read_region
from zoo.core.tensors import weight_tensors
from zoo.weights.blocks import Codes
from zoo.weights.materialize import put
from zoo.weights.source import WeightSource


def stored_weights(
    model: nn.Module, path: Path, regions: Mapping[str, Region]
) -> Iterator[tuple[str, Tensor]]:
    """Yield the weights of a model in a data file by name, in its shapes, in float32, each once."""
    shapes = {name: tensor.shape for name, tensor in weight_tensors(model)}
    seen = set[str]()
    for content, parts in contents(regions.values()).items():
        if not content.names:
            continue
        flat, start = content.restored([read_region(path, part) for part in parts]), 0
        for name in content.names:
            shape = shapes[name]
            values, start = flat[start : start + shape.numel()], start + shape.numel()
            if name not in seen:  # otherwise it is a second copy in another dtype
                seen.add(name)
                yield name, values.view(shape)


@dataclass(frozen=True)
class StoredWeight:
    """The change of a stored matrix: ``error`` is the root mean square of the difference relative to the original's;
    ``scale`` is the mean factor from original rows to stored ones, which rounding keeps near 1."""

    error: float
    scale: float


def take_stored(
    model: nn.Module, path: Path, regions: Mapping[str, Region], source: WeightSource
) -> dict[str, StoredWeight]:
    """Give a model in float32 the weights in a data file; return the change of each matrix from the original.

    Where the source provides codes, the original is their dequantized value.
    """
    held, changes = dict(weight_tensors(model)), dict[str, StoredWeight]()
    for name, after in stored_weights(model, path, regions):
        before = held.pop(name)  # each is released as its successor is read
        if before.dim() > 1:
            changes[name] = _differs(_meant(before, source.codes(name)), after)
        put(model, {id(before): alike(before, after)})
    return changes


def _meant(original: Tensor, codes: Codes | None) -> Tensor:
    if codes is None:
        return original
    return codes.values(original.shape[-1]).view(original.shape)


def alike(tensor: Tensor, values: Tensor) -> Tensor:
    """Values that can replace a tensor: a parameter for a parameter."""
    return nn.Parameter(values, requires_grad=False) if isinstance(tensor, nn.Parameter) else values


def _differs(before: Tensor, after: Tensor) -> StoredWeight:
    """The change of a matrix, or the largest changes of several: one wrong expert of many hardly moves their mean."""
    if before.dim() == 2:
        return _matrix_differs(before, after)
    changes = [_matrix_differs(*pair) for pair in zip(before, after, strict=True)]
    scale = max((change.scale for change in changes), key=lambda scale: abs(scale - 1))
    return StoredWeight(max(change.error for change in changes), scale)


def _matrix_differs(before: Tensor, after: Tensor) -> StoredWeight:
    size = float(torch.linalg.vector_norm(before))
    distance = float(torch.linalg.vector_norm(after - before))
    squares = before.flatten(1).square().sum(1)
    scales = (before * after).flatten(1).sum(1) / squares
    scale = float(scales[squares > 0].mean()) if size else 1.0
    return StoredWeight(distance / size if size else distance, scale)
