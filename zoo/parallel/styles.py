"""The parallel styles of what PyTorch has no style for: parts of mixers, mixtures of experts, splits of the sequence."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn
from torch.distributed.device_mesh import DeviceMesh
from torch.distributed.tensor import DTensor, Partial, Placement, Replicate, Shard
from torch.distributed.tensor.parallel import ParallelStyle

from zoo.components.block import Block
from zoo.core.facts import FANS
from zoo.core.sharding import HEADS, Cut, Section
from zoo.parallel.local_parameters import WHOLE, distribute, read_locally


class Several(ParallelStyle):
    """Styles of one module, applied in order."""

    def __init__(self, *styles: ParallelStyle) -> None:
        super().__init__()
        self.styles = styles

    def _apply(self, module: nn.Module, device_mesh: DeviceMesh) -> nn.Module:
        for style in self.styles:
            style.src_data_rank = self.src_data_rank
            module = style._apply(module, device_mesh)
        return module

    def __repr__(self) -> str:
        return " + ".join(map(repr, self.styles))


class LocalParameters(ParallelStyle):
    """A module's own parameters, each cut as stated; inputs and outputs are the process's own."""

    def __init__(self, cuts: Mapping[str, Cut | None]) -> None:
        super().__init__()
        self.cuts = dict(cuts)

    def _apply(self, module: nn.Module, device_mesh: DeviceMesh) -> nn.Module:
        distribute(module, self.cuts, device_mesh, self.src_data_rank)
        read_locally(module, self.cuts, device_mesh, [module])
        return module

    def __repr__(self) -> str:
        kinds = {leaf: "whole" if cut is None else cut.kind for leaf, cut in self.cuts.items()}
        return f"LocalParameters({kinds})"


def local_cuts(style: ParallelStyle) -> list[dict[str, Cut | None]]:
    """The cuts of the parameters that a style gives a module locally."""
    if isinstance(style, Several):
        return [cuts for inner in style.styles for cuts in local_cuts(inner)]
    return [style.cuts] if isinstance(style, LocalParameters) else []


class StatesNoted(ParallelStyle):
    """A block notes the states of its mixers again, which have fewer heads or channels."""

    def _apply(self, module: nn.Module, device_mesh: DeviceMesh) -> nn.Module:
        assert isinstance(module, Block)
        module.note_states()
        return module

    def __repr__(self) -> str:
        return "StatesNoted()"


class Divided(ParallelStyle):
    """Attributes that count heads or channels, or list a number for each, cut to the part of the process."""

    def __init__(self, divided: Mapping[str, tuple[Section, ...]]) -> None:
        super().__init__()
        self.divided = divided

    def _apply(self, module: nn.Module, device_mesh: DeviceMesh) -> nn.Module:
        degree, rank = device_mesh.size(), device_mesh.get_local_rank()
        for path, sections in self.divided.items():
            owner, _, name = path.rpartition(".")
            holder: Any = module.get_submodule(owner)
            local = sum(section.local(degree) for section in sections)
            now = getattr(holder, name)
            setattr(holder, name, local if isinstance(now, int) else now[rank * local : (rank + 1) * local])
        return module

    def __repr__(self) -> str:
        return f"Divided({', '.join(self.divided)})"


class ReadByAll(ParallelStyle):
    """The inputs of a module, or its outputs, are read by every process, which has a part of their gradient."""

    def __init__(self, side: str = "inputs") -> None:
        super().__init__()
        self.side = side

    def _apply(self, module: nn.Module, device_mesh: DeviceMesh) -> nn.Module:
        if self.side == "inputs":
            module.register_forward_pre_hook(
                lambda _, inputs: (read_by_all(inputs[0], device_mesh), *inputs[1:])
            )
        else:
            module.register_forward_hook(lambda _, inputs, output: read_by_all(output, device_mesh))
        return module

    def __repr__(self) -> str:
        return f"ReadByAll({self.side})"


class Placed(ParallelStyle):
    """The first input and the first output of a module under other placements; ``every`` for all inputs."""

    def __init__(
        self,
        inputs: tuple[Placement, Placement] | None = None,
        outputs: tuple[Placement, Placement] | None = None,
        *,
        every: bool = False,
    ) -> None:
        super().__init__()
        self.inputs, self.outputs, self.every = inputs, outputs, every

    def _apply(self, module: nn.Module, device_mesh: DeviceMesh) -> nn.Module:
        if self.inputs is not None:
            enter = partial(_changed, mesh=device_mesh, change=self.inputs, every=self.every)
            module.register_forward_pre_hook(lambda _, inputs: enter(inputs))
        if self.outputs is not None:
            leave = partial(_changed, mesh=device_mesh, change=self.outputs, every=False)
            module.register_forward_hook(
                lambda _, inputs, output: leave(output) if isinstance(output, tuple) else leave((output,))[0]
            )
        return module

    def __repr__(self) -> str:
        return f"Placed(inputs={self.inputs}, outputs={self.outputs})"


def _changed(
    values: tuple[Any, ...], mesh: DeviceMesh, change: tuple[Placement, Placement], *, every: bool
) -> tuple[Any, ...]:
    now, wanted = change
    if isinstance(wanted, Shard) and wanted.dim == 1:
        check_length(values[0].shape[1], mesh)
    first, *rest = values
    return (
        placed(first, mesh, now, wanted),
        *(
            placed(value, mesh, now, wanted) if every and isinstance(value, Tensor) else value
            for value in rest
        ),
    )


def check_length(length: int, mesh: DeviceMesh) -> None:
    """Raise :class:`ValueError` unless a sequence can be cut in equal parts."""
    if length % mesh.size():
        raise ValueError(
            f"sequence parallelism cuts sequences in {mesh.size()} equal parts, and this one has {length} tokens. "
            f"Pad to a multiple of {mesh.size()}, or parallelize without `sequence`."
        )


class ExpertParallel(ParallelStyle):
    """The matrices of a mixture by experts: each process computes the choices of its own, and the outputs are summed."""

    def _apply(self, module: nn.Module, device_mesh: DeviceMesh) -> nn.Module:
        degree, rank = device_mesh.size(), device_mesh.get_local_rank()
        count = 0
        for child in module.modules():
            by_expert = FANS.of(child) is not None
            leaves = dict.fromkeys(child._parameters, HEADS if by_expert else WHOLE)
            if by_expert:
                count = len(child.get_parameter("weight")) // degree
                distribute(child, leaves, device_mesh, self.src_data_rank)
                read_locally(child, leaves, device_mesh, [child])

        def enter(_: nn.Module, inputs: tuple[Tensor, Tensor, Tensor]) -> tuple[Tensor, Tensor, Tensor]:
            x, weights, experts = inputs
            own = experts - rank * count
            elsewhere = torch.full_like(own, count)  # an expert that the product passes over
            own = own.where((own >= 0) & (own < count), elsewhere)
            return read_by_all(x, device_mesh), read_by_all(weights, device_mesh), own

        module.register_forward_pre_hook(enter)
        module.register_forward_hook(
            lambda _, inputs, output: placed(output, device_mesh, Partial(), Replicate())
        )
        return module

    def __repr__(self) -> str:
        return "ExpertParallel()"


def read_by_all(x: Tensor, mesh: DeviceMesh) -> Tensor:
    """x, whose gradient is the sum over all processes."""
    whole = DTensor.from_local(x, mesh, [Replicate()], run_check=False)
    return whole.to_local(grad_placements=[Partial()])


def placed(x: Tensor, mesh: DeviceMesh, now: Placement, wanted: Placement) -> Tensor:
    """A process's part of x under another placement, such as the sum of partial results."""
    tensor = DTensor.from_local(x, mesh, [now], run_check=False)
    return tensor.redistribute(placements=[wanted]).to_local()
