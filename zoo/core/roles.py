"""Roles that modules state: the kind of a module and the role of its parameters, for the shares of a model."""

from __future__ import annotations

from torch import nn

ROLES = (
    "embedding", "positions", "attention", "cross-attention", "mixer", "feed-forward", "router", "experts", "norms", "head", "other",
)  # fmt: skip
"""The roles, in the order of reports."""


def kind_name(module: nn.Module) -> str:
    """The kind that a module is of; the name of its class for one that states none."""
    return str(getattr(module, "component_kind", type(module).__name__))


def role_of(module: nn.Module) -> str | None:
    """The role of its own that a module states, whatever holds it; None if it states none."""
    role: str | None = getattr(module, "parameter_role", None)
    return role


def active_share_of(module: nn.Module) -> tuple[int, int] | None:
    """For a module of which each token uses a part: the number of experts chosen for it, and their total; None for any other."""
    share: tuple[int, int] | None = getattr(module, "active_share", None)
    return share
