"""Recording the inputs and outputs of every module while a model runs."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from types import TracebackType
from typing import Any

from torch import nn

from zoo.checks.symbols import shapes_in
from zoo.components.position import Position

METHODS = ("forward", "encode", "decode", "embed", "rotate", "bias", "keys_values")
"""The methods that modules call on one another."""


@dataclass
class RecordedCall:
    """One call of a module's method, with the shapes of what went in and came out."""

    path: str
    method: str
    module: nn.Module
    inputs: Any
    outputs: Any = None


class Recorder:
    """A context in which the calls of a model's modules are recorded, in the order in which they begin.

    A module's calls to itself are part of the outer call. ``failed`` is the innermost call that raised an exception.
    """

    def __init__(self, model: nn.Module) -> None:
        self.calls: list[RecordedCall] = []
        self.failed: RecordedCall | None = None
        self._model = model
        self._running: set[str] = set()
        self._wrapped: list[tuple[nn.Module, str]] = []

    def __enter__(self) -> Recorder:
        for path, module in self._model.named_modules():
            for method in METHODS:
                if _is_own(module, method) and not _is_absent(module):
                    setattr(module, method, self._recorded(path, method, module))
                    self._wrapped.append((module, method))
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for module, method in self._wrapped:
            delattr(module, method)

    @contextmanager
    def forgetting(self) -> Iterator[None]:
        """A context whose calls are not kept, unless one of them fails."""
        kept = len(self.calls)
        yield
        del self.calls[kept:]

    def _recorded(self, path: str, method: str, module: nn.Module) -> Callable[..., Any]:
        function = getattr(module, method)

        @functools.wraps(function)
        def call(*args: Any, **kwargs: Any) -> Any:
            if path in self._running:
                return function(*args, **kwargs)
            inputs: Any = [*args, *kwargs.values()]
            if not path:  # the inputs of the whole model have names, as its outputs have
                inputs = inspect.signature(function).bind(*args, **kwargs).arguments
            record = RecordedCall(path, method, module, shapes_in(inputs))
            self.calls.append(record)
            self._running.add(path)
            try:
                outputs = function(*args, **kwargs)
            except Exception:
                self.failed = self.failed or record
                raise
            finally:
                self._running.discard(path)
            record.outputs = shapes_in(outputs)
            return outputs

        return call


def _is_absent(module: nn.Module) -> bool:
    """Whether a module stands for a part that the spec does not have."""
    return type(module) is nn.Identity or (isinstance(module, nn.Dropout) and module.p == 0)


def _is_own(module: nn.Module, method: str) -> bool:
    """Whether a module implements a method of this name, beyond the default that does nothing."""
    function = getattr(type(module), method, None)
    return callable(function) and function not in (nn.Module.forward, vars(Position).get(method))
