"""Follow which attention of a model runs."""

from __future__ import annotations

from collections.abc import Callable
from types import TracebackType
from typing import Any, Self

from torch import Tensor, nn
from torch.overrides import TorchFunctionMode
from torch.utils.hooks import RemovableHandle

from zoo import functional
from zoo.attention_maps.choice import StackName
from zoo.builder import ZooModel


class FollowedAttentions(TorchFunctionMode):
    """A context in which ``attends`` receives each attention call, in order.

    ``stack`` and ``layer`` identify the attention.  Attentions that do not call :func:`zoo.functional.attention` are
    not seen, nor are those outside of layers, such as pooling by attention.
    """

    def __init__(self, model: ZooModel) -> None:
        super().__init__()
        self._model = model
        self.layer = -1
        self.stack: StackName = "encoder"
        self._handles: list[RemovableHandle] = []

    def attends(self, args: tuple[Any, ...], options: dict[str, Any]) -> Tensor:
        """The result of an attention call, given its arguments."""
        raise NotImplementedError

    def __enter__(self) -> Self:
        for name, _ in self._model.spec.stacks():
            self._follow(name, self._model.get_submodule(name))
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
        options = kwargs or {}
        if function is functional.attention and self.layer >= 0:
            return self.attends(args, options)
        return function(*args, **options)

    def _follow(self, name: StackName, stack: nn.Module) -> None:
        """Track which layer's attention runs: a shared block stands for several layers."""

        def outside(module: nn.Module, *inputs_and_outputs: Any) -> None:
            self.layer = -1

        def next_layer(module: nn.Module, inputs: Any) -> None:
            self.layer += 1

        def of(stack: StackName) -> Callable[[nn.Module, Any], None]:
            def note(module: nn.Module, inputs: Any) -> None:
                self.stack = stack

            return note

        self._handles.append(stack.register_forward_pre_hook(outside))
        self._handles.append(stack.register_forward_hook(outside))
        for block in dict.fromkeys(stack.blocks):  # type: ignore[arg-type]
            self._handles.append(block.register_forward_pre_hook(next_layer))
            if block.attention is not None:
                self._handles.append(block.attention.register_forward_pre_hook(of(name)))
            if block.cross_attention is not None:
                self._handles.append(block.cross_attention.register_forward_pre_hook(of("cross")))
