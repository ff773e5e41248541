"""Parameters that get no gradient by design: a module that has some states them in a method ``without_gradient``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol, runtime_checkable

from torch import nn


@runtime_checkable
class WithoutGradient(Protocol):
    """A module with parameters that no output depends on, or whose changes later layers undo."""

    def without_gradient(self) -> Mapping[str, str]:
        """The reason for each parameter, or for each module below this one, by name."""


def without_gradient(model: nn.Module) -> dict[str, str]:
    """The reason for each trained parameter of a model that gets no gradient by design, by name."""
    prefixes = {
        f"{path}.{name}" if path else name: reason
        for path, module in model.named_modules()
        if isinstance(module, WithoutGradient)
        for name, reason in module.without_gradient().items()
    }
    return {
        name: prefixes[prefix]
        for name, parameter in model.named_parameters()
        if parameter.requires_grad
        for prefix in _prefixes(name)
        if prefix in prefixes
    }


def _prefixes(name: str) -> list[str]:
    """The dotted names of a tensor and of the modules around it: ``a``, ``a.b`` and ``a.b.c`` of ``a.b.c``."""
    parts = name.split(".")
    return [".".join(parts[:count]) for count in range(1, len(parts) + 1)]
