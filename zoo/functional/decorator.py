"""The decorator of functions that an exporter may replace as a whole."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import TypeVar

from torch.overrides import handle_torch_function, has_torch_function

Function = TypeVar("Function", bound=Callable[..., object])


def semantic_op(function: Function) -> Function:
    """Let a tracer see the function as one call: an argument that overrides torch functions receives it.

    ``__wrapped__`` is the body, which a tracer follows if the function has no entry in :mod:`zoo.ops`.
    """

    @functools.wraps(function)
    def call(*args: object, **kwargs: object) -> object:
        overriding = tuple(
            arg for arg in (*args, *kwargs.values()) if hasattr(type(arg), "__torch_function__")
        )
        if has_torch_function(overriding):
            return handle_torch_function(call, overriding, *args, **kwargs)
        return function(*args, **kwargs)

    return call  # type: ignore[return-value]
