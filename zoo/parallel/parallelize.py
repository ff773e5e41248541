"""Cutting a model along the dims of a device mesh, in place."""

from __future__ import annotations

import warnings
from collections import defaultdict
from collections.abc import Iterator
from functools import partial
from typing import Any, Unpack

import torch
from torch import nn
from torch.distributed.device_mesh import DeviceMesh
from torch.distributed.fsdp import fully_shard, register_fsdp_forward_method
from torch.distributed.tensor import DTensor
from torch.distributed.tensor.parallel import parallelize_module
from torch.utils.checkpoint import checkpoint

from specs.base.errors import UserError
from specs.model.model import Model
from zoo.builder import ZooModel, assemble
from zoo.checkpoints.open_weights import open_weights
from zoo.components.attention import CrossAttention
from zoo.components.block import Block
from zoo.components.position import Position
from zoo.models.stack import stacks_of
from zoo.parallel.local_parameters import WHOLE, distribute, read_locally
from zoo.parallel.mesh import FsdpKeywords, degrees_of
from zoo.parallel.pipeline import StageModule, stage_of
from zoo.parallel.plan import ParallelPlan, plan_of
from zoo.parallel.shards import fill
from zoo.parallel.styles import local_cuts
from zoo.weights.ties import tied_names

ENTRIES = (
    "encode", "decode", "encoder_output", "keys_values", "embed", "encode_images", "image_output", "vector",
    "continue_from",
)  # fmt: skip
"""The methods of models and components that others call instead of their forwards."""

VIEWS = "FSDP2-wrapped module .* returned a view tensor"


def cut_tensors(model: nn.Module, plan: ParallelPlan, mesh: DeviceMesh, *, sequence: bool) -> None:
    """Apply tensor parallelism over a mesh of one dim, and sequence parallelism with ``sequence``.

    Every parameter becomes a distributed tensor.  Raises :class:`specs.base.errors.UserError` for a degree that does not fit.
    """
    tied = tied_names(model)
    paths, every = {path for path, _ in model.named_modules()}, defaultdict[int, list[str]](list)
    for path, module in model.named_modules(remove_duplicate=False):
        every[id(module)].append(path)

    def readers(module: nn.Module) -> Iterator[nn.Module]:
        yield from dict.fromkeys(reader for path in every[id(module)] for reader in _readers(model, path))

    styles = plan.tensor_parallel(mesh.size(), sequence=sequence)
    own = {path: style for path, style in styles.items() if path in paths}
    parallelize_module(model, mesh, own, src_data_rank=None)
    _tie(model, tied)
    for path, style in own.items():
        for cuts in local_cuts(style):
            read_locally(model.get_submodule(path), cuts, mesh, readers(model.get_submodule(path)))
    for module in model.modules():
        cuts = {
            leaf: WHOLE
            for leaf, held in module._parameters.items()
            if held is not None and not isinstance(held, DTensor)
        }
        if cuts:
            distribute(module, cuts, mesh)
            read_locally(module, cuts, mesh, readers(module))
    _tie(model, tied)


def _tie(model: nn.Module, tied: dict[str, str]) -> None:
    for name, first in tied.items():
        (path, _, leaf), (origin, _, source) = name.rpartition("."), first.rpartition(".")
        model.get_submodule(path).register_parameter(leaf, model.get_submodule(origin)._parameters[source])


def _readers(model: nn.Module, path: str) -> Iterator[nn.Module]:
    """The modules around a path whose forward may read its parameters, from the innermost up to its block."""
    while True:
        module = model.get_submodule(path)
        yield module
        if isinstance(module, Block | CrossAttention) or not path:
            return
        path = path.rpartition(".")[0]


def _sharing(model: nn.Module) -> set[str]:
    """The blocks that share some of their weights with others: no unit of FSDP may have them alone."""
    pairs = ((name, first) for name, first in tied_names(model).items() if _block(name) != _block(first))
    return {_block(name) for pair in pairs for name in pair if _block(name)}


def _block(name: str) -> str:
    stack, _, rest = name.partition(".blocks.")
    return f"{stack}.blocks.{rest.partition('.')[0]}" if rest else ""


def _cut_position(position: Any, mesh: DeviceMesh, options: dict[str, Any]) -> None:
    """Make a unit of the position of a single layer whose bias its stack asks for before the layer runs."""
    if position is not None and type(position).bias is not Position.bias:
        fully_shard(position, mesh=mesh, **options)
        for name in ("bias", "distances"):
            register_fsdp_forward_method(position, name)


def cut_data(model: nn.Module, mesh: DeviceMesh, **options: Any) -> None:
    """Apply FSDP2 over a mesh of one dim: every block with weights of its own is a unit, and so are an attention to an encoder, whose keys and values
    are projected apart from its block, and the rest.  ``options`` are those of ``fully_shard``."""
    shared = _sharing(model)
    for name, stack in stacks_of(model).items():
        for layer, block in enumerate(stack.blocks):
            if block is None or f"{name}.blocks.{layer}" in shared or block in list(stack.blocks)[:layer]:
                continue
            attention: Any = block.attention
            if attention is not None:
                _cut_position(attention.position, mesh, options)
            cross: Any = block.cross_attention
            if cross is not None:
                fully_shard(cross, mesh=mesh, **options)
                register_fsdp_forward_method(cross, "keys_values")
            fully_shard(block, mesh=mesh, **options)
    fully_shard(model, mesh=mesh, **options)
    warnings.filterwarnings("ignore", VIEWS)  # nobody writes into the states that blocks return
    for name in ENTRIES:
        if hasattr(model, name):
            register_fsdp_forward_method(model, name)


def recompute_layers(model: nn.Module) -> None:
    """Let each layer keep its inputs alone, and compute the rest again in the backward pass."""
    for stack in stacks_of(model).values():
        for block in dict.fromkeys(filter(None, stack.blocks)):
            block.forward = partial(checkpoint, block.forward, use_reentrant=False)


def _check_positions(spec: Model) -> None:
    """Raise :class:`specs.base.errors.UserError` if a position needs weights that its layer has not gathered."""
    for position in (own for _, stack in spec.stacks() for own in spec.positions_in(stack)):
        if position.read_outside_layers:
            raise UserError(
                f"position.kind: FSDP cannot cut {position.kind}, whose vectors are read outside their layers\n"
                "  value: a mesh with dp\n  Use tp, or another position."
            )


def parallelize(
    model: ZooModel,
    mesh: DeviceMesh,
    *,
    weights: str | None = None,
    seed: int = 0,
    sequence: bool = False,
    recompute: bool = False,
    **fsdp: Unpack[FsdpKeywords],
) -> ZooModel | StageModule:
    """See :func:`zoo.parallelize`."""
    degrees = degrees_of(mesh)
    if "dp" in degrees:
        _check_positions(model.spec)
    plan = plan_of(model)
    source = None
    if weights is not None:
        dtype = next(model.parameters()).dtype
        source = open_weights(weights, assemble(model.spec), model.spec, seed=seed, dtype=dtype)
    cut: ZooModel | StageModule = model
    if "pp" in degrees:
        cut = stage_of(model, mesh["pp"])
    if degrees.get("tp", 1) > 1:
        cut_tensors(cut, plan, mesh["tp"], sequence=sequence)
    if recompute:
        recompute_layers(cut)
    if "dp" in degrees:
        cut_data(cut, mesh["dp"], **fsdp)
    if source is not None:
        fill(cut, source, torch.device(mesh.device_type))
    return cut
