"""The role of parameters, for the shares of a model: a module that has one states it, for itself and the modules inside."""

from __future__ import annotations

from typing import Protocol, runtime_checkable

ROLES = (
    "embedding", "positions", "attention", "cross-attention", "mixer", "feed-forward", "router", "experts", "norms", "head", "other",
)  # fmt: skip
"""The roles, in the order of reports."""


@runtime_checkable
class HasRole(Protocol):
    """A module with a role of its own, whatever holds it."""

    parameter_role: str


@runtime_checkable
class PartlyActive(Protocol):
    """A module of which each token uses a part: the number of experts chosen for it, of their total."""

    active_share: tuple[int, int]
