"""Checkpoints of ``torch.distributed.checkpoint``: each process writes its shards, and any number of processes read them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import torch.distributed as dist
from torch import nn
from torch.distributed.checkpoint.state_dict import get_optimizer_state_dict, set_optimizer_state_dict
from torch.distributed.checkpoint.state_dict_loader import load
from torch.distributed.checkpoint.state_dict_saver import save
from torch.optim import Optimizer

from specs.errors import UserError
from specs.model import Model
from zoo.weights.distributed import METADATA, MODEL

SPEC = "spec.json"
OPTIMIZER = "optimizer"


def save_checkpoint(model: nn.Module, directory: Path, optimizer: Optimizer | None = None) -> None:
    """See :func:`zoo.save_checkpoint`."""
    save(_state(model, optimizer), checkpoint_id=directory)
    if not dist.is_initialized() or dist.get_rank() == 0:
        (directory / SPEC).write_text(json.dumps(_described(model.spec), indent=2) + "\n", encoding="utf-8")  # type: ignore[arg-type]
    if dist.is_initialized():
        dist.barrier()


def load_checkpoint(model: nn.Module, directory: Path, optimizer: Optimizer | None = None) -> None:
    """See :func:`zoo.load_checkpoint`."""
    if not (directory / METADATA).is_file():
        raise UserError(
            f"{directory} is no checkpoint of torch.distributed.checkpoint (no {METADATA})\n"
            "  Pass a directory that zoo.save_checkpoint wrote."
        )
    check_spec(directory, model.spec)  # type: ignore[arg-type]
    state = _state(model, optimizer)
    load(state, checkpoint_id=directory)
    model.load_state_dict(state[MODEL])
    if optimizer is not None:
        set_optimizer_state_dict(model, optimizer, state[OPTIMIZER])


def check_spec(directory: Path, spec: Model) -> None:
    """Raise :class:`specs.errors.UserError` where a checkpoint is of another spec."""
    if not (directory / SPEC).is_file():
        return
    stored, wanted = json.loads((directory / SPEC).read_text(encoding="utf-8")), _described(spec)
    different = [key for key in sorted({*stored, *wanted}) if stored.get(key) != wanted.get(key)]
    if different:
        shown = "; ".join(
            f"{key}: {json.dumps(stored.get(key))[:60]}, and the model has {json.dumps(wanted.get(key))[:60]}"
            for key in different[:4]
        )
        raise UserError(
            f"{directory} is a checkpoint of another spec\n  {shown}\n  Load it into a model of its own spec."
        )


def _described(spec: Model) -> dict[str, Any]:
    """The architecture of a spec, without its name."""
    data = json.loads(spec.model_dump_json())
    return {
        key: value
        for key, value in data.items()
        if key not in ("name", "summary", "source", "year", "expect")
    }


def _state(model: nn.Module, optimizer: Optimizer | None) -> dict[str, Any]:
    state: dict[str, Any] = {MODEL: model.state_dict()}
    if optimizer is not None:
        state[OPTIMIZER] = get_optimizer_state_dict(model, optimizer)
    return state
