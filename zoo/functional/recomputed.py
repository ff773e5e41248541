"""Recurrences as PyTorch operations of their own.

Compilers, counters of FLOPs and autograd see one call: the number of chunks depends on the length, and what chunks compute is
computed again for the gradient, so that only the inputs are kept.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import Tensor

Rule = Callable[..., tuple[Tensor, Tensor]]
"""From queries, B H T K, and the other inputs to the results of all tokens, B H T V in the dtype of the queries, and the last
state."""


@contextlib.contextmanager
def _as_given(like: Tensor) -> Iterator[None]:
    """Computes in the dtypes of the operands, under autocast too."""
    device = like.device.type
    if not torch.amp.is_autocast_available(device):
        yield
        return
    with torch.autocast(device, enabled=False):
        yield


def _shapes(query: Tensor, key: Tensor, value: Tensor, *rest: Any) -> tuple[Tensor, Tensor]:
    batch, heads, _, out = value.shape
    inside = torch.promote_types(query.dtype, torch.float32)
    last = query.new_empty(batch, heads, query.shape[3], out, dtype=inside)
    return query.new_empty(value.shape), last


def _keep(ctx: Any, inputs: tuple[Tensor | None, ...], output: tuple[Tensor, Tensor]) -> None:
    ctx.save_for_backward(*inputs)


def define_operation(name: str, inputs: str, rule: Rule) -> None:
    """Define the operation ``name``, of inputs as a schema has them: what a rule computes.

    The first inputs are the queries, B G T K, the keys and the values, B H T V.
    """

    def compute(query: Tensor, *rest: Any) -> tuple[Tensor, Tensor]:
        with _as_given(query):
            mixed, last = rule(query, *rest)
        return mixed.contiguous(), last

    def gradients(ctx: Any, for_mixed: Tensor, for_last: Tensor) -> tuple[Tensor | None, ...]:
        """The gradients of the inputs, by way of chunks that are computed again."""
        needed = ctx.needs_input_grad
        with torch.enable_grad(), _as_given(for_mixed):
            inputs = [
                tensor.detach().requires_grad_() if wanted else tensor
                for tensor, wanted in zip(ctx.saved_tensors, needed, strict=True)
            ]
            mixed, last = rule(*inputs)
            trained = [tensor for tensor, wanted in zip(inputs, needed, strict=True) if wanted]
            gradients = iter(torch.autograd.grad((mixed, last), trained, (for_mixed, for_last)))
        return tuple(next(gradients) if wanted else None for wanted in needed)

    torch.library.define(name, f"({inputs}) -> (Tensor, Tensor)")
    torch.library.impl(name, "default")(compute)
    torch.library.impl(name, "Meta")(_shapes)
    torch.library.register_autograd(name, gradients, setup_context=_keep)
