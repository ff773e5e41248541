"""Forwards that see plain tensors in the place of sharded parameters."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import torch
from torch import Tensor, nn
from torch.distributed.device_mesh import DeviceMesh
from torch.distributed.tensor import DTensor, Partial, Placement, Replicate, Shard, distribute_tensor

from zoo.core.sharding import HEADS, Cut

WHOLE = None
"""The cut of a parameter that every process holds and uses alike."""


def distribute(
    module: nn.Module, cuts: Mapping[str, Cut | None], mesh: DeviceMesh, source: int | None = None
) -> None:
    """Make parameters of a module distributed tensors, in place."""
    for leaf, cut in cuts.items():
        parameter = module._parameters.get(leaf)
        if parameter is not None:
            placement: Placement = Shard(0) if cut == HEADS else Replicate()
            held = distribute_tensor(parameter, mesh, [placement], src_data_rank=source)
            module.register_parameter(leaf, nn.Parameter(held, parameter.requires_grad))


def own_part(parameter: DTensor, cut: Cut | None, mesh: DeviceMesh) -> Tensor:
    """The part of a parameter that a process computes with, as a plain tensor with a gradient."""
    if cut is WHOLE or cut == HEADS:
        return parameter.to_local()
    whole = parameter.to_local(grad_placements=[Partial()])
    if not cut.sections:
        return whole
    degree, rank = mesh.size(), mesh.get_local_rank()
    parts = whole.split([section.size for section in cut.sections])
    return torch.cat(
        [
            part.chunk(degree)[rank] if section.cut else part
            for part, section in zip(parts, cut.sections, strict=True)
        ]
    )


def read_locally(
    module: nn.Module, cuts: Mapping[str, Cut | None], mesh: DeviceMesh, readers: Iterable[nn.Module]
) -> None:
    """Give the forwards of ``readers`` the process's part of a module's parameters under their own names."""
    opened: list[list[str]] = []

    def enter(*inputs: object) -> None:
        names: list[str] = []
        for leaf, cut in cuts.items():
            parameter: Any = module._parameters.get(leaf)
            if isinstance(parameter, DTensor) and leaf not in module.__dict__:
                module.__dict__[leaf] = own_part(parameter, cut, mesh)
                names.append(leaf)
        opened.append(names)

    def leave(*results: Any) -> None:
        for leaf in opened.pop() if opened else ():
            del module.__dict__[leaf]

    for reader in readers:
        reader.register_forward_pre_hook(enter)
        reader.register_forward_hook(leave, always_call=True)
