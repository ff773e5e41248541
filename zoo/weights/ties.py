"""State dicts that hold a tied weight once, under its first name, as files do."""

from __future__ import annotations

from typing import Any

from torch import nn

from zoo.core.tensors import weight_tensors


def tied_names(model: nn.Module) -> dict[str, str]:
    """The first name of each tied weight, by its other names."""
    first: dict[int, str] = {}
    copies = {}
    for name, tensor in weight_tensors(model, remove_duplicate=False):
        if (earlier := first.setdefault(id(tensor), name)) != name:
            copies[name] = earlier
    return copies


def hold_ties_once(model: nn.Module) -> None:
    """Make ``state_dict`` return a tied weight once, as safetensors requires, and ``load_state_dict`` accept it once
    or under all of its names."""
    model.register_state_dict_post_hook(_dropped)
    model.register_load_state_dict_pre_hook(_restored)


def _dropped(model: nn.Module, state: dict[str, Any], prefix: str, metadata: object) -> None:
    for name in tied_names(model):
        state.pop(prefix + name, None)


def _restored(model: nn.Module, state: dict[str, Any], prefix: str, *_: object) -> None:
    for name, first in tied_names(model).items():
        if prefix + first in state:
            state.setdefault(prefix + name, state[prefix + first])
