"""Checkpoints of ``torch.distributed.checkpoint``: each process writes its shards, and any number of processes read them."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import torch.distributed as dist
from torch import nn
from torch.distributed.checkpoint.state_dict import get_optimizer_state_dict, set_optimizer_state_dict
from torch.distributed.checkpoint.state_dict_loader import load
from torch.distributed.checkpoint.state_dict_saver import save
from torch.optim import Optimizer

from specs.base.errors import UserError
from zoo.configs.recorded_spec import check_recorded_spec, record_spec
from zoo.weights.distributed import MODEL
from zoo.weights.names import METADATA

OPTIMIZER = "optimizer"


def save_checkpoint(model: nn.Module, directory: Path, optimizer: Optimizer | None = None) -> None:
    """See :func:`zoo.save_checkpoint`."""
    save(_state(model, optimizer), checkpoint_id=directory)
    if not dist.is_initialized() or dist.get_rank() == 0:
        record_spec(directory, model.spec)  # type: ignore[arg-type]
    if dist.is_initialized():
        dist.barrier()


def load_checkpoint(model: nn.Module, directory: Path, optimizer: Optimizer | None = None) -> None:
    """See :func:`zoo.load_checkpoint`."""
    if not os.path.lexists(directory / METADATA):
        raise UserError(
            f"{directory} is no checkpoint of torch.distributed.checkpoint (no {METADATA})\n"
            "  Pass a directory that zoo.save_checkpoint wrote."
        )
    check_recorded_spec(directory, model.spec)  # type: ignore[arg-type]
    state = _state(model, optimizer)
    load(state, checkpoint_id=directory)
    model.load_state_dict(state[MODEL])
    if optimizer is not None:
        set_optimizer_state_dict(model, optimizer, state[OPTIMIZER])


def _state(model: nn.Module, optimizer: Optimizer | None) -> dict[str, Any]:
    state: dict[str, Any] = {MODEL: model.state_dict()}
    if optimizer is not None:
        state[OPTIMIZER] = get_optimizer_state_dict(model, optimizer)
    return state
