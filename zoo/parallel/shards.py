"""Weights for the shards of a process: each tensor's values pass by in pieces, and the process keeps its own."""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Tensor, nn
from torch.distributed.tensor import DTensor
from torch.distributed.tensor.placement_types import Shard, _StridedShard

from zoo.core.tensors import weight_tensors
from zoo.weights.materialize import put
from zoo.weights.source import WeightSource

Box = tuple[tuple[int, int], ...]
"""The first index of a part of a tensor, and the one after its last, along each axis."""


def own_box(tensor: Tensor) -> Box:
    """The part of a tensor that this process holds: the last dim of the mesh is cut first, as FSDP cuts shards of tensor
    parallelism."""
    box = [(0, size) for size in tensor.shape]
    if not isinstance(tensor, DTensor):
        return tuple(box)
    coordinate = tensor.device_mesh.get_coordinate()
    assert coordinate is not None
    for dim in reversed(range(tensor.device_mesh.ndim)):
        placement = tensor.placements[dim]
        if isinstance(placement, Shard | _StridedShard):  # the second is FSDP's, of tensors already cut
            axis = placement.dim
            begin, end = box[axis]
            size = -(-(end - begin) // tensor.device_mesh.shape[dim])
            first = min(begin + coordinate[dim] * size, end)
            box[axis] = first, min(first + size, end)
    return tuple(box)


@torch.no_grad()
def fill(model: nn.Module, source: WeightSource, device: torch.device) -> None:
    """Give every parameter and persistent buffer of a process its values; no process holds a whole tensor that is cut."""
    filled = {}
    for name, tensor in weight_tensors(model):
        local = drawn(tensor, name, source).to(device)
        held: Tensor = local
        if isinstance(tensor, DTensor):
            held = DTensor.from_local(
                local,
                tensor.device_mesh,
                tensor.placements,
                run_check=False,
                shape=tensor.shape,
                stride=tensor.stride(),
            )
        if isinstance(tensor, nn.Parameter):
            held = nn.Parameter(held, tensor.requires_grad)
        filled[id(tensor)] = held
    put(model, filled)


def drawn(tensor: Tensor, name: str, source: WeightSource) -> Tensor:
    """The values of a process's part of a tensor, in its dtype."""
    (begin, end), *others = own_box(tensor) or ((0, 1),)
    shape = tuple(tensor.shape) or (1,)
    width = torch.Size(shape[1:]).numel()
    local = torch.empty((end - begin, *(last - first for first, last in others)), dtype=tensor.dtype)
    inside = tuple(slice(*other) for other in others)
    row = 0
    for rows in _whole_rows(source.part(name, begin * width, end * width), width):
        count = rows.numel() // width
        local[row : row + count] = rows.view(count, *shape[1:])[(slice(None), *inside)]
        row += count
    return local if tensor.dim() else local[0]


def _whole_rows(pieces: Iterator[Tensor], width: int) -> Iterator[Tensor]:
    """Flat pieces that end with a row each."""
    rest = torch.empty(0)
    for piece in pieces:
        joined = torch.cat((rest.to(piece.dtype), piece)) if rest.numel() else piece
        whole = joined.numel() - joined.numel() % width
        if whole:
            yield joined[:whole]
        rest = joined[whole:].clone()
