"""The base of whole models: calls that fail say which input is at fault."""

from __future__ import annotations

import functools
from collections.abc import Callable
from inspect import signature
from typing import Any, ClassVar

import torch
from torch import Tensor, nn

import specs.model.model as spec
from zoo.generation.prompts import weights_missing
from zoo.models.call_faults import all_meta, fault_of_call
from zoo.models.outputs import Outputs


class BuiltModel(nn.Module):
    """A model of a spec.

    ``entries`` are the methods that users call.  They raise :class:`specs.base.errors.UserError` for a model without weights
    and for wrong inputs.  Nothing is checked in advance, which would wait for the device at every call: an error of torch is
    explained once it is raised.
    """

    spec: spec.Model
    in_stages: ClassVar[bool] = False
    """Whether a pipeline can cut its only stack in stages: the first embeds tokens, the last has the head."""
    entries: ClassVar[tuple[str, ...]] = ("forward",)

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        for name in cls.entries:
            if name in cls.__dict__:
                setattr(cls, name, _explained(cls.__dict__[name]))


def _explained(entry: Callable[..., Any]) -> Callable[..., Any]:
    """The entry with errors that name the input at fault."""

    @functools.wraps(entry)
    def call(self: BuiltModel, *args: Any, **kwargs: Any) -> Any:
        if torch.compiler.is_compiling():
            return entry(self, *args, **kwargs)
        try:
            result = entry(self, *args, **kwargs)
        except (IndexError, RuntimeError, TypeError, AttributeError) as error:
            fault = fault_of_call(self, _arguments(entry, self, args, kwargs), error)
            if fault is None:
                raise
            raise fault from None
        if _is_meta(result) and not all_meta((*args, *kwargs.values())):
            raise weights_missing(self.spec)
        return result

    return call


def _is_meta(result: object) -> bool:
    """Whether a result has shapes alone."""
    first = next(iter(result.values()), None) if isinstance(result, Outputs) else result
    return isinstance(first, Tensor) and first.is_meta


def _arguments(entry: Callable[..., Any], *args: Any) -> dict[str, Any]:
    """The arguments of a call by name; none if it has others than the entry takes."""
    model, positional, named = args
    try:
        return signature(entry).bind(model, *positional, **named).arguments
    except TypeError:
        return {}
