"""What the self-attentions of a decoder are given while it runs in PyTorch, layer by layer, and what they use instead.

Shapes: batch B, heads H, key-value heads G, query tokens T, key tokens S, head width K.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from types import TracebackType
from typing import Any

from torch import Tensor, nn
from torch.overrides import TorchFunctionMode
from torch.utils.hooks import RemovableHandle

from zoo import functional
from zoo.builder import ZooModel


@dataclass(frozen=True)
class CachedAttention:
    """One call of a layer's self-attention: the path of its module, the layer, and the arguments of the call.

    query: B H T K, key and value: B G S K, bias: broadcast to B H T S, or None.
    """

    path: str
    layer: int
    query: Tensor
    key: Tensor
    value: Tensor
    bias: Tensor | None
    options: dict[str, Any]


def attention_paths(model: ZooModel) -> list[str]:
    """The path of each layer's self-attention; layers that share a block have the same."""
    decoder: nn.Module = model.decoder  # type: ignore[assignment]
    paths = {module: path for path, module in model.named_modules()}
    return [paths[block.attention] for block in decoder.blocks]  # type: ignore[union-attr]


Replace = Callable[[CachedAttention], tuple[Tensor, Tensor]]
"""Gives the keys and values that an attention uses in the place of its own."""


class CachedAttentions(TorchFunctionMode):
    """A context in which ``replace`` gives the keys and values of a decoder's self-attentions, in the order of the layers.

    What the model returns as its cache stays as it is.
    """

    def __init__(self, model: ZooModel, replace: Replace) -> None:
        super().__init__()
        self._model, self._replace = model, replace
        self._path: str | None = None
        self._layer = -1
        self._handles: list[RemovableHandle] = []

    def __enter__(self) -> CachedAttentions:
        decoder: nn.Module = self._model.decoder  # type: ignore[assignment]
        self._handles.append(decoder.register_forward_pre_hook(self._begin))
        for path in dict.fromkeys(attention_paths(self._model)):
            attention = self._model.get_submodule(path)
            self._handles += [
                attention.register_forward_pre_hook(self._entering(path)),
                attention.register_forward_hook(self._leave),
            ]
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
        if function is functional.attention and self._path is not None:
            query, key, value, bias = args
            call = CachedAttention(self._path, self._layer, query, key, value, bias, options)
            args = (query, *self._replace(call), bias)
        return function(*args, **options)

    def _begin(self, module: nn.Module, inputs: Any) -> None:
        self._layer = -1

    def _entering(self, path: str) -> Callable[[nn.Module, Any], None]:
        def enter(module: nn.Module, inputs: Any) -> None:
            self._path = path
            self._layer += 1

        return enter

    def _leave(self, module: nn.Module, inputs: Any, result: Any) -> None:
        self._path = None
