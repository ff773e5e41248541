"""Parameters that get no gradient by design: a module that has some states them in a method ``without_gradient``."""

from __future__ import annotations

from torch import nn

from zoo.core.facts import WITHOUT_GRADIENT


def without_gradient(model: nn.Module) -> dict[str, str]:
    """The reason for each trained parameter of a model that gets no gradient by design, by name."""
    prefixes = {
        f"{path}.{name}" if path else name: reason
        for path, module in model.named_modules()
        for name, reason in WITHOUT_GRADIENT.of(module)().items()
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
