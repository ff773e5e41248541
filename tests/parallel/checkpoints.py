"""What processes do with shards and checkpoints."""

from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.distributed as dist
from torch.distributed.device_mesh import init_device_mesh

import zoo
from tests.parallel.models import MODELS
from tests.parallel.steps import greedy, inputs, logits, loss, whole


def mesh_of(*names: str):
    """All processes in a mesh of one dim, or two by the rest."""
    every = dist.get_world_size()
    return init_device_mesh("cpu", (every,) if len(names) == 1 else (2, every // 2), mesh_dim_names=names)


def drawn_and_read(names: tuple[str, ...], dims: tuple[str, ...], stored: str) -> None:
    """Weights drawn or read shard by shard are those of one process, and no process allocates a whole matrix."""
    for name in names:
        spec = MODELS[name]
        expected = dict(zoo.build(spec, "random", seed=3).named_parameters())
        for weights in ("random", f"{stored}/{name}"):
            model = zoo.parallelize(zoo.build(spec), mesh_of(*dims), weights=weights, seed=3)
            for path, parameter in model.named_parameters():
                assert torch.equal(whole(parameter), expected[path]), (name, weights, path)
            scores = logits(model, inputs(spec))
            torch.testing.assert_close(
                scores, logits(zoo.build(spec, "random", seed=3), inputs(spec)), atol=1e-5, rtol=1e-5
            )


def train(spec, dims: tuple[str, ...], seed: int):
    """A model with its optimizer after one step on all inputs."""
    model = zoo.parallelize(zoo.build(spec), mesh_of(*dims), weights="random", seed=seed)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2, eps=1e-3)  # some gradients are rounding alone
    step(model, optimizer)
    return model, optimizer


def step(model, optimizer) -> None:
    batch = inputs(model.spec)
    loss(logits(model, batch), batch["targets"]).backward()
    optimizer.step()
    optimizer.zero_grad()


def save(name: str, dims: tuple[str, ...], directory: str) -> None:
    """Save after one step; then take another and write the weights that it gives."""
    model, optimizer = train(MODELS[name], dims, 0)
    zoo.save_checkpoint(model, directory, optimizer)
    saved = {path: whole(each.detach()).clone() for path, each in model.named_parameters()}
    step(model, optimizer)
    after = {path: whole(each.detach()).clone() for path, each in model.named_parameters()}
    if dist.get_rank() == 0:
        torch.save({"saved": saved, "after": after}, f"{directory}.pt")


def resume(name: str, dims: tuple[str, ...], directory: str) -> None:
    """Load on other processes: the weights are those saved, and the next step gives what it gave there."""
    model, optimizer = train(MODELS[name], dims, 1)
    zoo.load_checkpoint(model, directory, optimizer)
    known = torch.load(f"{directory}.pt")
    for path, parameter in model.named_parameters():
        assert torch.equal(whole(parameter.detach()), known["saved"][path]), path
    step(model, optimizer)
    for path, parameter in model.named_parameters():
        torch.testing.assert_close(whole(parameter.detach()), known["after"][path], atol=1e-5, rtol=0)


def load_another(directory: str) -> None:
    """A checkpoint of another spec is refused on every process."""
    model = zoo.parallelize(zoo.build(MODELS["tied"]), mesh_of("dp"), weights="random")
    with pytest.raises(zoo.UserError) as caught:
        zoo.load_checkpoint(model, directory)
    assert "is a checkpoint of another spec\n  " in str(caught.value)
    assert "or derive weights for small with zoo adapt." in str(caught.value)


def killed(marker: str) -> None:
    """The last process is killed between two steps."""
    model, optimizer = train(MODELS["grouped-query"], ("dp",), 0)
    if dist.get_rank() == dist.get_world_size() - 1:
        Path(marker).touch()
        os.kill(os.getpid(), signal.SIGKILL)
    step(model, optimizer)


def pipeline(names: tuple[str, ...], dims: tuple[str, ...], dtype: torch.dtype, tolerance: float) -> None:
    """Two steps of a pipeline give the loss, the gradients and the weights of one process."""
    for name in names:
        spec = MODELS[name]
        mesh, batch = mesh_of(*dims), inputs(spec)
        alone: Any = zoo.build(spec, "random", dtype=dtype)
        stage: Any = zoo.parallelize(zoo.build(spec, dtype=dtype), mesh, weights="random")
        optimizers = [torch.optim.SGD(each.parameters(), lr=0.1, momentum=0.9) for each in (stage, alone)]
        for _ in range(2):
            schedule, losses = stage.schedule(2, loss), list[Any]()
            given = (batch["ids"],) if stage.first else ()
            target: dict[str, Any] = {"target": batch["targets"], "losses": losses} if stage.last else {}
            schedule.step(*given, attention_mask=batch["mask"], **target)
            single = loss(logits(alone, batch), batch["targets"])
            single.backward()
            if stage.last:
                assert abs(float(sum(losses) / len(losses)) - float(single)) < 1e-5, name
            expected = dict(alone.named_parameters())
            for path, parameter in stage.named_parameters():
                same(f"{name}: gradient of {path}", whole(parameter.grad), expected[path].grad, tolerance)
            for optimizer in optimizers:
                optimizer.step()
                optimizer.zero_grad()
        for path, parameter in stage.named_parameters():
            same(f"{name}: {path}", whole(parameter), expected[path], tolerance)


def generated(names: tuple[str, ...], dims: tuple[str, ...]) -> None:
    """Every stage of a pipeline gives the cached greedy and sampled tokens of one process."""
    for name in names:
        spec, mesh = MODELS[name], mesh_of(*dims)
        alone: Any = zoo.build(spec, "random", seed=1)
        stage: Any = zoo.parallelize(zoo.build(spec), mesh, weights="random", seed=1)
        batch = inputs(spec)
        assert greedy(stage, batch) == greedy(alone, batch), name
        how: dict[str, Any] = {"temperature": 0.8, "top_k": 5, "seed": 3, "stop": [7]}
        assert stage.generate([[1, 2, 3]], 12, **how) == alone.generate([[1, 2, 3]], 12, **how), name


def same(what: str, found, wanted, tolerance: float) -> None:
    """Raise where two tensors differ by more than a fraction of the largest value, or of 1 where that is less."""
    found, wanted = found.detach(), wanted.detach()
    difference = float((found - wanted).abs().max() / wanted.abs().max().clamp(min=1.0))
    assert difference < tolerance, f"{what} differs by {difference}"
