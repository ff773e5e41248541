"""A model on several processes compared with the same model on one, in float32."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import Tensor, nn
from torch.distributed.device_mesh import DeviceMesh, init_device_mesh
from torch.distributed.tensor import DTensor

import zoo
from specs.files.device import load_device
from specs.model.model import Model
from tests.parallel.models import MODELS
from tests.parallel.newest_models import NEWEST
from zoo.models.encoder_decoder import EncoderDecoder
from zoo.parallel.on_paper import ModelOnPaper

ROWS, LENGTH = 4, 8
EVERY = {**MODELS, **NEWEST}

MESHES = {"dp": ("dp",), "tp": ("tp",), "sp": ("tp",), "dp-tp": ("dp", "tp"), "dp-sp": ("dp", "tp")}
"""The dims of the mesh by the ways to cut a model; ``sp`` is tensor with sequence parallelism."""


def inputs(spec: Model) -> dict[str, Tensor]:
    """Token ids, one row of them padded on the left, and those that are to be predicted; an image in each row, if the model
    reads some."""
    drawn = torch.Generator().manual_seed(1)
    ids, targets = (torch.randint(0, 32, (ROWS, LENGTH), generator=drawn) for _ in range(2))
    mask = torch.ones_like(ids)
    mask[1, :3] = 0
    batch = {"ids": ids, "mask": mask, "targets": targets}
    connector: Any = spec.connector
    if connector is not None:
        image: Any = spec.image
        ids[ids == connector.token] = 0
        ids[:, 3:7] = connector.token  # four squares of four patches
        pixels = torch.randn(16 * ROWS, image.embedding.patch_width, generator=drawn)
        batch |= {"pixels": pixels, "grids": torch.tensor([[1, 4, 4]] * ROWS)}
    return batch


def logits(model: nn.Module, batch: dict[str, Tensor]) -> Tensor:
    """The scores of each token."""
    if isinstance(model, EncoderDecoder):
        return model(batch["ids"], batch["targets"], batch["mask"]).logits
    if "pixels" in batch:
        pixels = batch["pixels"].to(next(model.parameters()).dtype)
        images = {"pixel_values": pixels, "image_grid_thw": batch["grids"]}
        return model(batch["ids"], batch["mask"], **images).logits
    return model(batch["ids"], batch["mask"]).logits


def loss(scores: Tensor, targets: Tensor) -> Tensor:
    """The cross-entropy of all tokens."""
    return F.cross_entropy(scores.flatten(0, 1), targets.flatten())


def whole(tensor: Any) -> Any:
    """A distributed tensor on one process."""
    return tensor.full_tensor() if isinstance(tensor, DTensor) else tensor


def greedy(model: Any, batch: dict[str, Tensor]) -> list[list[int]]:
    """Sixteen tokens through the cache, after prompts of different lengths."""
    prompts = [row[mask > 0].tolist() for row, mask in zip(batch["ids"], batch["mask"], strict=True)]
    return model.generate(prompts, 16)


def compare_all(names: Sequence[str], way: str, dtype: torch.dtype, tolerance: float) -> None:
    """Compare each model on the processes of this group; every process raises what differs."""
    for name in names:
        compare(name, way, dtype, tolerance)


def compare(name: str, way: str, dtype: torch.dtype, tolerance: float) -> dict[str, float]:
    """The worst differences of a model that is cut in some way; raises where one exceeds the tolerance."""
    spec, every = EVERY[name], dist.get_world_size()
    names = MESHES[way]
    shape = (every,) if len(names) == 1 else (2, every // 2)
    mesh = init_device_mesh("cpu", shape, mesh_dim_names=names)
    alone: Any = zoo.build(spec, "random", dtype=dtype)
    model: Any = zoo.parallelize(
        zoo.build(spec, "random", dtype=dtype), mesh, sequence="sp" in way, recompute=way == "dp-sp"
    )
    batch = inputs(spec)
    parts, part = (mesh["dp"].size(), mesh["dp"].get_local_rank()) if "dp" in names else (1, 0)
    own = {key: each.chunk(parts)[part] for key, each in batch.items()}

    worst: dict[str, float] = {}

    def same(what: str, found: Any, wanted: Any) -> None:
        found, wanted = found.detach(), wanted.detach()
        worst[what] = float((found - wanted).abs().max() / wanted.abs().max().clamp(min=1.0))
        assert worst[what] < tolerance, f"{name}: {what} differs by {worst[what]}"

    optimizers = [torch.optim.SGD(each.parameters(), lr=0.1, momentum=0.9) for each in (model, alone)]
    with torch.no_grad():
        same("logits", logits(model, own), logits(alone, own))
    total, single = loss(logits(model, own), own["targets"]), loss(logits(alone, batch), batch["targets"])
    total.backward()
    single.backward()
    average = total.detach().clone()
    dist.all_reduce(average)
    same("loss", average / every, single)
    expected = dict(alone.named_parameters())
    for path, parameter in model.named_parameters():
        if expected[path].requires_grad:
            same(f"gradient of {path}", whole(parameter.grad), expected[path].grad)
    for optimizer in optimizers:
        optimizer.step()
    for path, parameter in model.named_parameters():
        same(f"updated {path}", whole(parameter), expected[path])
    check_shards(model, mesh)
    if hasattr(model, "generate") and "sp" not in way and "pixels" not in batch:
        assert greedy(model, batch) == greedy(alone, batch), f"{name}: greedy tokens differ"
    gradients = [value for key, value in worst.items() if key.startswith("gradient")]
    return {"logits": worst["logits"], "loss": worst["loss"], "gradient": max(gradients)}


def check_shards(model: Any, mesh: DeviceMesh) -> None:
    """Every parameter is a distributed tensor, and those that the plan cuts are cut along every dim."""
    whole_ones = set(zoo.parallel_plan(model.spec).replicated)
    for path, parameter in model.named_parameters():
        assert isinstance(parameter, DTensor), f"{path} is no distributed tensor"
        dims = [name for name in mesh.mesh_dim_names or () if name == "dp" or path not in whole_ones]
        degree = math.prod(mesh[name].size() for name in dims)
        if parameter.shape[0] % degree == 0:
            assert parameter.to_local().numel() * degree == parameter.numel(), f"{path} is not cut"
    held = torch.tensor(float(sum(each.to_local().numel() for each in model.parameters())))
    dist.all_reduce(held)
    degrees = {name: mesh[name].size() for name in mesh.mesh_dim_names or ()}
    on_paper = ModelOnPaper(model.spec, "fp32").on(degrees, load_device("h100"), 1, 8)
    assert float(held) / dist.get_world_size() == on_paper.stage / on_paper["dp"]
