"""A model during a trace: its modules name their calls, and its weights are values of the trace."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from threading import RLock, get_ident
from typing import Any

from torch import nn
from torch.jit import ScriptModule

_OBSERVING = RLock()
"""Held while a trace changes modules, which two traces may share."""

_REGISTERED = ("_parameters", "_buffers", "_modules")
"""The attributes that hold the parts of a module by name."""


@contextmanager
def observed(model: nn.Module, enter: Callable[..., Any], value: Callable[[Any], Any]) -> Iterator[None]:
    """The model, whose modules call ``enter(path, forward, ...)`` instead of their forward, and whose weights are read as ``value(weight)``.

    This holds for the thread that enters: others may run the model meanwhile. Afterwards, modules have the attributes and registered names that they had before. Compiled modules of TorchScript, whose
    parts are not held in Python, are left as they are.
    """
    with _OBSERVING:
        modules = [part for part in model.named_modules() if not isinstance(part[1], ScriptModule)]
        before = [(dict(vars(module)), _registered(module)) for _, module in modules]
        try:
            for path, module in modules:
                vars(module)["forward"] = partial(_enter, get_ident(), enter, path, module.forward)
                for kind in ("_parameters", "_buffers"):
                    if vars(module)[kind]:
                        vars(module)[kind] = _Weights(vars(module)[kind], value)
            yield
        finally:
            for (_, module), (attributes, registered) in zip(modules, before, strict=True):
                _restore(vars(module), attributes)
                for kind, held in registered.items():
                    _restore(vars(module)[kind], held)


def _registered(module: nn.Module) -> dict[str, dict[str, Any]]:
    return {kind: dict(vars(module)[kind]) for kind in _REGISTERED}


def _restore(held: dict[str, Any], before: dict[str, Any]) -> None:
    """Make a dict what it was before, which other threads always find whole."""
    held.update(before)
    if len(held) > len(before):
        for name in held.keys() - before.keys():
            del held[name]


def _enter(
    thread: int, enter: Callable[..., Any], path: str, forward: Callable[..., Any], *args: Any, **kwargs: Any
) -> Any:
    return enter(path, forward, *args, **kwargs) if get_ident() == thread else forward(*args, **kwargs)


class _Weights(dict[str, Any]):
    """A module's weights by name, each read as its value in a trace by the thread that made this."""

    def __init__(self, weights: dict[str, Any], value: Callable[[Any], Any]) -> None:
        super().__init__(weights)
        self._value, self._thread = value, get_ident()

    def __getitem__(self, name: str) -> Any:
        weight = super().__getitem__(name)
        return self._value(weight) if get_ident() == self._thread else weight
