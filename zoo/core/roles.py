"""The roles of the parameters of modules, for the shares of a model, and the kind of a module."""

from __future__ import annotations

from torch import nn

from zoo.core.facts import KIND

ROLES = (
    "embedding", "positions", "attention", "cross-attention", "mixer", "feed-forward", "router", "experts", "norms", "head", "other",
)  # fmt: skip
"""The roles, in the order of reports."""


def kind_name(module: nn.Module) -> str:
    """The kind that a module is of; the name of its class for one that states none."""
    return KIND.of(module) or type(module).__name__
