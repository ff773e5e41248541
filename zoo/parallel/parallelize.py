"""Cutting a model along the dims of a device mesh, in place."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from torch import nn
from torch.distributed.device_mesh import DeviceMesh
from torch.distributed.fsdp import fully_shard, register_fsdp_forward_method
from torch.distributed.tensor import DTensor
from torch.distributed.tensor.parallel import parallelize_module

from zoo.builder import ZooModel
from zoo.components.block import Block
from zoo.parallel.local_parameters import WHOLE, distribute, read_locally
from zoo.parallel.mesh import degrees_of
from zoo.parallel.plan import plan_of, stacks_of
from zoo.weights.ties import tied_names

ENTRIES = ("encode", "decode", "encoder_output", "keys_values", "embed", "see", "image_output", "vector")
"""The methods of models and components that others call instead of their forwards."""


def cut_tensors(model: ZooModel, mesh: DeviceMesh, *, sequence: bool = False) -> None:
    """Apply tensor parallelism over a mesh of one dim, and sequence parallelism with ``sequence``.

    Every parameter becomes a distributed tensor.  Raises :class:`specs.errors.UserError` for a degree that does not fit.
    """
    plan, tied = plan_of(model), tied_names(model)
    parallelize_module(model, mesh, plan.tensor_parallel(mesh.size(), sequence=sequence), src_data_rank=None)
    _tie(model, tied)
    for path, module in model.named_modules():
        cuts = {
            leaf: WHOLE
            for leaf, held in module._parameters.items()
            if held is not None and not isinstance(held, DTensor)
        }
        if cuts:
            distribute(module, cuts, mesh)
            read_locally(module, cuts, mesh, _readers(model, path))
    _tie(model, tied)


def _tie(model: nn.Module, tied: dict[str, str]) -> None:
    for name, first in tied.items():
        (path, _, leaf), (origin, _, source) = name.rpartition("."), first.rpartition(".")
        model.get_submodule(path).register_parameter(leaf, model.get_submodule(origin)._parameters[source])


def _readers(model: nn.Module, path: str) -> Iterator[nn.Module]:
    """The modules around a path whose forward may read its parameters, the innermost first: those of its block at most."""
    while True:
        module = model.get_submodule(path)
        yield module
        if isinstance(module, Block) or not path:
            return
        path = path.rpartition(".")[0]


def cut_data(model: nn.Module, mesh: DeviceMesh, **options: Any) -> None:
    """Apply FSDP2 over a mesh of one dim: every block is a unit, and so are an attention to an encoder, whose keys and values
    are projected apart from its block, and the rest.  ``options`` are those of ``fully_shard``."""
    for stack in stacks_of(model).values():
        for block in dict.fromkeys(stack.blocks):
            if block.cross_attention is not None:
                fully_shard(block.cross_attention, mesh=mesh, **options)
                register_fsdp_forward_method(block.cross_attention, "keys_values")
            fully_shard(block, mesh=mesh, **options)
    fully_shard(model, mesh=mesh, **options)
    for name in ENTRIES:
        if hasattr(model, name):
            register_fsdp_forward_method(model, name)


def parallelize(
    model: ZooModel, mesh: DeviceMesh, *, sequence: bool = False, **fsdp: Any
) -> ZooModel:
    """See :func:`zoo.parallelize`."""
    degrees = degrees_of(mesh)
    if degrees.get("tp", 1) > 1:
        cut_tensors(model, mesh["tp"], sequence=sequence)
    if "dp" in degrees:
        cut_data(model, mesh["dp"], **fsdp)
    return model
