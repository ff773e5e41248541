"""The attention calls of a model as it runs on the meta device: scales, windows, heads and biases."""

from __future__ import annotations

import inspect
import sys
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

from specs.model.model import Model
from specs.model.stack import Stack
from zoo import functional
from zoo.functional import semantic_op

_BETWEEN = ("torch.", semantic_op.__module__)
"""The modules of the functions between a method and the recorder."""
_LENGTH = 3
"""Of the inputs: another number than of the sizes of most models, and a query more than one."""


@dataclass(frozen=True)
class AttentionCall:
    """One call of :func:`zoo.functional.attention`: the path of the module that makes it (or ""), and what it asks for.

    ``masked``: some bias says which keys a query sees; ``masked_only``: it only says which keys a query sees, by padding, order and ``window``: an engine can do so, too.
    """

    path: str
    scale: float
    heads: int
    key_heads: int
    width: int
    value_width: int
    causal: bool
    window: int | None
    masked: bool
    masked_only: bool
    softcap: float | None
    has_sinks: bool
    adds_per_head: bool
    own_keys: bool
    """Whether there is one key per query token."""


class _Recorder(TorchFunctionMode):
    """Records calls of attention with the modules whose methods make them."""

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.calls: list[AttentionCall] = []
        self._paths = {id(module): path for path, module in model.named_modules()}
        self._biases: dict[int, dict[str, Any]] = {}
        self._kept: list[object] = []  # so that ids stay unique

    def __torch_function__(
        self, function: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        kwargs = kwargs or {}
        if function is functional.attention_bias:
            result = function(*args, **kwargs)
            self._kept.append(result)
            if result is not None:
                bound = inspect.signature(inspect.unwrap(function)).bind(*args, **kwargs)
                self._biases[id(result)] = bound.arguments
            return result
        if function is functional.attention:
            bound = inspect.signature(inspect.unwrap(function)).bind(*args, **kwargs)
            self._note(**bound.arguments)
        return function(*args, **kwargs)

    def _note(
        self,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        bias: Tensor | None,
        scale: float,
        softcap: float | None = None,
        sinks: Tensor | None = None,
        **others: Any,
    ) -> None:
        limits = self._biases.get(id(bias), {}) if bias is not None else {"causal": False}
        plain = {"key_mask", "queries", "keys", "like", "causal", "window", "position_bias"}
        used = {name for name, value in limits.items() if value is not None}
        self.calls.append(
            AttentionCall(
                self._paths.get(id(_caller()), ""),
                scale,
                query.shape[1],
                key.shape[1],
                query.shape[3],
                value.shape[3],
                bool(limits.get("causal", False)),
                limits.get("window"),
                "key_mask" in limits,
                bool(limits) and used <= plain and limits.get("position_bias") is None,
                softcap,
                sinks is not None,
                bias is not None and bias.shape[1] > 1,
                key.shape[2] == query.shape[2],
            )
        )


@torch.no_grad()
def attention_calls(model: nn.Module, spec: Model) -> list[AttentionCall]:
    """The calls in one run of a model on the meta device, in their order."""
    recorder = _Recorder(model)
    with recorder, torch.device("meta"):
        model(**_inputs(model, spec))
    return recorder.calls


def _caller() -> object:
    """The ``self`` of the method that calls attention, in whose class the call goes through an interface."""
    frame = sys._getframe(1)
    while frame.f_back is not None and frame.f_globals["__name__"].startswith((__name__, *_BETWEEN)):
        frame = frame.f_back
    return frame.f_locals.get("self")


def _inputs(model: nn.Module, spec: Model) -> dict[str, Tensor]:
    """An input for every stack."""
    names = inspect.signature(model.forward).parameters
    ids = torch.empty(1, _LENGTH, dtype=torch.int64, device="meta")
    if spec.architecture in ("dual-encoder", "vision-language"):
        return {"input_ids": ids, "pixel_values": _input(spec, spec.stack("image"))}
    first = next(iter(names))
    inputs = {first: _input(spec, spec.first_stack)}
    return inputs | ({"decoder_input_ids": ids} if spec.architecture == "encoder-decoder" else {})


def _input(spec: Model, stack: Stack) -> Tensor:
    embedding = spec.embedding_of(stack)
    if embedding.takes_tokens:
        return torch.empty(1, _LENGTH, dtype=torch.int64, device="meta")
    length = _LENGTH if embedding.any_length else spec.context_length_of(stack)
    return torch.empty(1, *embedding.input_shape(length), device="meta")
