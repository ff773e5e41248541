"""The dims of a device mesh that a model can be cut along."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, TypedDict

from torch.distributed.device_mesh import DeviceMesh

from specs.base.errors import UserError
from specs.base.suggest import suggestion

if TYPE_CHECKING:
    from torch import nn
    from torch.distributed.fsdp import MixedPrecisionPolicy, OffloadPolicy
    from torch.distributed.tensor import Shard


class FsdpKeywords(TypedDict, total=False):
    """The options of ``torch.distributed.fsdp.fully_shard``."""

    reshard_after_forward: bool | int | None
    shard_placement_fn: Callable[[nn.Parameter], Shard | None] | None
    mp_policy: MixedPrecisionPolicy
    offload_policy: OffloadPolicy
    ignored_params: set[nn.Parameter] | None


DIMS = {"dp": "data", "tp": "tensor", "pp": "pipeline"}
"""The names of the dims, and the parallelism that each stands for."""


def degrees_of(mesh: DeviceMesh) -> dict[str, int]:
    """The size of each dim of a mesh. Raises :class:`specs.base.errors.UserError` for dims of other names."""
    names = mesh.mesh_dim_names or ()
    return check_names(dict(zip(names, mesh.shape, strict=True)) if names else {"(none)": mesh.size()})


def check_names(degrees: Mapping[str, int]) -> dict[str, int]:
    """The same degrees. Raises :class:`specs.base.errors.UserError` for names other than ``DIMS`` and sizes below 1."""
    for name, size in degrees.items():
        if name not in DIMS:
            raise UserError(
                f"The dims of a mesh must be named {', '.join(DIMS)}.\n  value: {name}\n  {suggestion(name, DIMS)}"
            )
        if size < 1:
            raise UserError(f"{name} must be at least 1.\n  value: {size}\n  Use {name}=1 or more.")
    return dict(degrees)
