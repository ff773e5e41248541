"""Reading the weights of attentions while a model runs.

Shapes: batch B, heads H, queries T, keys S.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from types import TracebackType
from typing import Any

import torch
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode
from torch.utils.hooks import RemovableHandle

from zoo import functional
from zoo.attending.choice import StackName
from zoo.builder import ZooModel


@dataclass(frozen=True)
class Call:
    """One call of a layer's attention.

    weights: B H T S, or B H T (S + 1) with those of the sink last; seen: B T S or B T (S + 1), where a query may look.
    """

    stack: StackName
    layer: int
    weights: Tensor
    seen: Tensor
    sink: bool


class Recording(TorchFunctionMode):
    """A context in which ``tell`` is called with each call of an attention, in the order in which they are made.

    The weights are those that :func:`zoo.functional.attention` mixes the values with, computed by the same function from
    the very arguments of the call.  Attentions that do not call it are not seen.
    """

    def __init__(self, model: ZooModel, tell: Callable[[Call], None]) -> None:
        super().__init__()
        self._tell = tell
        self._model = model
        self._layer = -1
        self._stack: StackName = "encoder"
        self._handles: list[RemovableHandle] = []

    def __enter__(self) -> Recording:
        for name in ("encoder", "decoder"):
            if (stack := getattr(self._model, name, None)) is not None:
                self._follow(name, stack)
        super().__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        super().__exit__(kind, error, trace)
        for handle in self._handles:
            handle.remove()

    def __torch_function__(
        self, function: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        given = kwargs or {}
        if function is functional.attention:
            self._tell(self._call(*args, **given))
        return function(*args, **given)

    def _follow(self, name: StackName, stack: nn.Module) -> None:
        """Keep track of which layer's attention runs: a block may stand at several places of a stack."""

        def begin(module: nn.Module, inputs: Any) -> None:
            self._layer = -1

        def next_layer(module: nn.Module, inputs: Any) -> None:
            self._layer += 1

        def attends(to: StackName) -> Callable[[nn.Module, Any], None]:
            def note(module: nn.Module, inputs: Any) -> None:
                self._stack = to

            return note

        self._handles.append(stack.register_forward_pre_hook(begin))
        for block in dict.fromkeys(stack.blocks):  # type: ignore[arg-type]
            self._handles.append(block.register_forward_pre_hook(next_layer))
            self._handles.append(block.attention.register_forward_pre_hook(attends(name)))
            if getattr(block, "cross_attention", None) is not None:
                self._handles.append(block.cross_attention.register_forward_pre_hook(attends("cross")))

    def _call(
        self,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        bias: Tensor | None,
        *,
        scale: float,
        dropout: float = 0.0,
        softcap: float | None = None,
        sinks: Tensor | None = None,
    ) -> Call:
        weights = functional.attention_weights(query, key, bias, scale=scale, softcap=softcap, sinks=sinks)
        batch, _, queries, _ = weights.shape
        seen = torch.ones((batch, queries, key.shape[2]), dtype=torch.bool, device=weights.device)
        if bias is not None:  # what is forbidden is so for all heads
            seen &= (bias > functional.forbidden(bias.dtype))[:, 0]
        if sinks is not None:
            seen = torch.cat((seen, seen.new_ones((batch, queries, 1))), -1)
        return Call(self._stack, self._layer, weights, seen, sinks is not None)
