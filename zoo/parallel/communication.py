"""Communication between processes inside a forward pass, and its gradient."""

from __future__ import annotations

from torch import Tensor
from torch.distributed.device_mesh import DeviceMesh
from torch.distributed.tensor import DTensor, Partial, Placement, Replicate


def read_by_all(x: Tensor, mesh: DeviceMesh) -> Tensor:
    """x, whose gradient is the sum over all processes."""
    whole = DTensor.from_local(x, mesh, [Replicate()], run_check=False)
    return whole.to_local(grad_placements=[Partial()])


def placed(x: Tensor, mesh: DeviceMesh, now: Placement, wanted: Placement) -> Tensor:
    """A process's part of x under another placement, such as the sum of partial results."""
    tensor = DTensor.from_local(x, mesh, [now], run_check=False)
    return tensor.redistribute(placements=[wanted]).to_local()
