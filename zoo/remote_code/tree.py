"""A built model as an expression: classes, attributes that copied code reads, and the shapes of weights."""

from __future__ import annotations

import dataclasses
import enum
import functools
import inspect
import math
import types
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import torch
from pydantic import BaseModel
from torch import nn

from specs.base.roles import field_values
from zoo.core.facts import KIND
from zoo.remote_code.bindings import Key, RemoteCodeError
from zoo.remote_code.closure import Closure
from zoo.remote_code.expressions import Expression, Group, call, flat, quoted, repeated
from zoo.remote_code.pieces import SEMANTIC

_MODULE = frozenset([*vars(nn.Module()), KIND.name])
"""The attributes of every module that no forward reads."""
_DISPATCHED = next(key for key, path in SEMANTIC.items() if path == "interface")


class Tree:
    """Writes modules.  ``special`` are expressions for single modules, ``interfaces`` those of attentions by module.

    ``name_of`` gives the name of a definition in the file; ``layers`` is the path of the list that engines cut into stages.
    """

    def __init__(
        self,
        model: nn.Module,
        closure: Closure,
        name_of: Callable[[Key], str],
        special: Mapping[int, Expression],
        interfaces: Mapping[int, Expression],
        layers: str,
    ) -> None:
        self._closure, self._name_of = closure, name_of
        self._special, self._interfaces, self._layers = special, interfaces, layers
        self._paths = {id(module): path for path, module in model.named_modules()}
        self.written: set[str] = set()
        """The paths of the parameters and buffers in the file."""
        self.imports: dict[str, str] = {}
        self.dispatching: set[str] = set()
        """The paths of attentions that go through the interface."""

    def parts(
        self, module: nn.Module, path: str = "", *, without: Iterable[str] = ()
    ) -> dict[str, Expression]:
        """The attributes, parameters and children of a module."""
        parts: dict[str, Expression] = {}
        wholly = not _has_own_constructor(type(module)) or _torch_base(type(module)) is not nn.Module
        for name, value in vars(module).items():
            if name not in _MODULE and name not in without and (wholly or self._needs(module, name)):
                parts[name] = self.value(value, f"{path}.{name}".lstrip("."))
        for name, parameter in module._parameters.items():
            parts[name] = "None" if parameter is None else self._parameter(parameter)
            self._note(path, name, parameter)
        for name, buffer in module._buffers.items():
            parts[name] = "None" if buffer is None else self._buffer(module, name, buffer)
            self._note(path, name, buffer)
        for name, child in module._modules.items():
            if name not in without:
                parts[name] = (
                    "None" if child is None else self.child(child, module, f"{path}.{name}".lstrip("."))
                )
        if self._calls_interface(type(module)):
            if id(module) not in self._interfaces:
                raise RemoteCodeError(
                    f"{path} takes no part in a run of the model, which remote code learns from"
                )
            parts["interface"] = self._interfaces[id(module)]
            self.dispatching.add(path)
        return parts

    def child(self, module: nn.Module, parent: nn.Module, path: str) -> Expression:
        """A module at a path, or a reference to where it is first; the items of a list are made anew, with tied weights."""
        first = self._paths[id(module)]
        copied = isinstance(parent, nn.ModuleList) or first.startswith(f"{self._paths[id(parent)]}.")
        if path != first and not copied:
            return call("Reference", quoted(first))
        return self.module(module, path)

    def module(self, module: nn.Module, path: str) -> Expression:
        """The expression that makes a module."""
        if (made := self._special.get(id(module))) is not None:
            for name, parameter in module.named_parameters():
                self._note(path, name, parameter)
            return made
        if isinstance(module, nn.ModuleList | nn.Sequential):
            items = [
                self.child(child, module, f"{path}.{name}")
                for name, child in module._modules.items()
                if child
            ]
            if isinstance(module, nn.Sequential):
                return call("nn.Sequential", *items)
            kind = "Layers" if path == self._layers else "nn.ModuleList"
            return call(kind, Group("[", repeated(items), "]"))
        if isinstance(module, nn.ModuleDict):
            named = {name: self.child(child, module, f"{path}.{name}") for name, child in module.items()}
            return call("nn.ModuleDict", call("dict", **named))
        if _has_own_constructor(type(module)):
            return call("made", self.function(type(module)), **self.parts(module, path))
        for name, tensor in (*module._parameters.items(), *module._buffers.items()):
            self._note(path, name, tensor)
        return call(self.function(type(module)), **self._arguments(module))

    def _arguments(self, module: nn.Module) -> dict[str, Expression]:
        """The arguments of the constructor of torch, as the module's attributes have them."""
        arguments: dict[str, Expression] = {}
        for name, parameter in inspect.signature(_torch_base(type(module))).parameters.items():
            variadic = parameter.kind in (parameter.VAR_KEYWORD, parameter.VAR_POSITIONAL)
            if name in ("device", "dtype") or name.startswith("_") or variadic:
                continue
            if not hasattr(module, name):
                raise RemoteCodeError(f"{type(module).__name__} of torch cannot be written as remote code")
            value = getattr(module, name)
            value = value is not None if name == "bias" else value
            if value != parameter.default:
                arguments[name] = self.value(value, name)
        return arguments

    def _needs(self, module: nn.Module, name: str) -> bool:
        return self._closure.needs(type(module), name)

    def _calls_interface(self, kind: type) -> bool:
        """Whether a class, or one that it derives from, has a call that goes through the interface."""
        return any(
            _DISPATCHED in piece.calls
            for definition in self._closure.definitions.values()
            if definition.is_module and issubclass(kind, definition.value)
            for piece in definition.all_pieces()
        )

    def _note(self, path: str, name: str, tensor: object) -> None:
        if isinstance(tensor, torch.Tensor):
            self.written.add(f"{path}.{name}".lstrip("."))

    @staticmethod
    def _parameter(parameter: nn.Parameter) -> Expression:
        function = "parameter" if parameter.requires_grad else "constant_parameter"
        return call(function, *map(str, parameter.shape))

    @staticmethod
    def _buffer(module: nn.Module, name: str, buffer: torch.Tensor) -> Expression:
        if name in module._non_persistent_buffers_set:
            raise RemoteCodeError(
                f"Buffer {name} of {type(module).__name__} is not in checkpoints, so that remote code lacks its values\n"
                "  Make it persistent, or compute it in the forward."
            )
        dtype = "" if buffer.dtype == torch.float32 else str(buffer.dtype)
        shape = Group("(", tuple(map(str, buffer.shape)), ")")
        return call("nn.Buffer", call("torch.empty", shape, **({"dtype": dtype} if dtype else {})))

    # Values

    def value(self, value: Any, path: str) -> Expression:
        """The expression of an attribute's value."""
        if isinstance(value, enum.Enum):
            return f"{self.function(type(value))}.{value.name}"
        if value is None or isinstance(value, bool | int | str | bytes):
            return quoted(value) if isinstance(value, str) else repr(value)
        if isinstance(value, float):
            return repr(value) if math.isfinite(value) else f'float("{value}")'
        if isinstance(value, torch.dtype):
            return str(value)
        if isinstance(value, nn.Module):
            if id(value) not in self._paths:
                raise RemoteCodeError(f"{path} is a module outside the model, which remote code cannot have")
            return call("Reference", quoted(self._paths[id(value)]))
        if isinstance(value, tuple | list | set | frozenset | dict):
            return self._collection(value, path)
        if isinstance(value, functools.partial):
            self.imports["functools"] = "import functools"
            named = {name: self.value(argument, path) for name, argument in value.keywords.items()}
            return call(
                "functools.partial",
                self.value(value.func, path),
                *(self.value(v, path) for v in value.args),
                **named,
            )
        if isinstance(value, BaseModel):
            fields = field_values(value).items()
            named = {n: self.value(v, path) for n, v in fields if self._closure.needs(type(value), n)}
            return call(self.function(type(value)), **named)
        if dataclasses.is_dataclass(value) and not isinstance(value, type):
            values = (
                (field, getattr(value, field.name)) for field in dataclasses.fields(value) if field.init
            )
            named = {f.name: self.value(v, path) for f, v in values if not _is_default(f, v)}
            return call(self.function(type(value)), **named)
        if isinstance(value, types.MethodType) and isinstance(value.__self__, nn.Module):
            self._closure.attributes.add(value.__name__)
            return call("Reference", quoted(self._paths[id(value.__self__)]), quoted(value.__name__))
        if callable(value):
            return self.function(value)
        raise RemoteCodeError(f"{path} is of type {type(value).__name__}, which remote code cannot have")

    def _collection(self, value: Any, path: str) -> Expression:
        if isinstance(value, dict):
            return self._dictionary(value, path)
        if isinstance(value, tuple) and hasattr(value, "_fields"):
            defaults = type(value)._field_defaults  # type: ignore[attr-defined]
            items = value._asdict().items()  # type: ignore[attr-defined]
            named = {n: self.value(v, path) for n, v in items if n not in defaults or defaults[n] != v}
            return call(self.function(type(value)), **named)
        items = tuple(self.value(item, path) for item in value)
        if isinstance(value, list | tuple):
            begin, end = ("(", ")") if isinstance(value, tuple) else ("[", "]")
            if len(items) > 3 and len(set(items)) == 1:
                return f"{flat(Group(begin, items[:1], end))} * {len(items)}"
            return Group(begin, items, end)
        return call(
            "frozenset" if isinstance(value, frozenset) else "set",
            Group("[", tuple(sorted(map(flat, items))), "]"),
        )

    def _dictionary(self, value: dict[Any, Any], path: str) -> Expression:
        keys = [*value]
        if (
            len(keys) > 3
            and keys == [*range(len(keys))]
            and all(isinstance(module, nn.Module) for module in value.values())
        ):
            paths = [self._paths[id(module)] for module in value.values()]
            pattern = paths[0].replace(".0.", ".{layer}.", 1)
            if paths == [pattern.replace("{layer}", str(key)) for key in keys]:
                return f'{{layer: Reference(f"{pattern}") for layer in range({len(keys)})}}'
        items = tuple(f"{flat(self.value(k, path))}: {flat(self.value(v, path))}" for k, v in value.items())
        return Group("{", items, "}")

    def function(self, value: Any) -> str:
        """The name of a function or class."""
        value = inspect.unwrap(value) if inspect.isfunction(value) else value
        module = str(getattr(value, "__module__", None))
        if self._closure.resolver.copies(module):
            return self._name_of(self._closure.add_value(value))
        for name, origin in (("F", nn.functional), ("torch", torch), ("nn", nn)):
            attribute = next(
                (key for key, known in vars(origin).items() if known is value and key[0] != "_"), None
            )
            if attribute is not None:
                self.imports[name] = _TORCH[name]
                return f"{name}.{attribute}"
        if module in ("builtins", "math", "operator"):
            self.imports[module] = f"import {module}"
            return f"{module}.{value.__name__}"
        raise RemoteCodeError(
            f"{value!r} is neither of torch nor of the model's package, so remote code cannot have it"
        )


_TORCH = {
    "F": "import torch.nn.functional as F",
    "torch": "import torch",
    "nn": "from torch import nn",
}


def _torch_base(kind: type) -> type:
    """The nearest class of torch that a class derives from."""
    return next(base for base in kind.__mro__ if base.__module__.partition(".")[0] == "torch")


def _has_own_constructor(kind: type) -> bool:
    """Whether the constructor of a class is not torch's."""
    owner = next(base for base in kind.__mro__ if "__init__" in vars(base))
    return owner.__module__.partition(".")[0] != "torch" or owner is nn.Module


def _is_default(field: dataclasses.Field[Any], value: object) -> bool:
    return field.default is not dataclasses.MISSING and field.default == value
