"""The properties of the attentions in a stack that engines and configs state."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from torch import nn

from specs.model.model import Model
from zoo.components.mixer import Mixer
from zoo.models.stack import Stack
from zoo.remote_code.bindings import RemoteCodeError
from zoo.remote_code.expressions import Expression, call
from zoo.remote_code.recording import AttentionCall


@dataclass(frozen=True)
class Attentions:
    """The calls of attention in a model, by the module that makes them."""

    calls: dict[int, AttentionCall]
    repeated: bool
    """Whether a module calls it several times, as one that stands for several layers, or a function does that is no method."""

    @classmethod
    def of(cls, model: nn.Module, calls: Sequence[AttentionCall]) -> Attentions:
        """Gather the calls of a run."""
        by_module: dict[int, AttentionCall] = {}
        repeated = False
        for attention in calls:
            module = model.get_submodule(attention.path)
            known = by_module.setdefault(id(module), attention)
            repeated = repeated or known is not attention or not attention.path
            if known != attention:
                raise RemoteCodeError(
                    f"{type(module).__name__} calls attention in two ways, which remote code cannot tell apart\n"
                    "  Give each a module of its own."
                )
        return cls(by_module, repeated)

    def interfaces(self) -> dict[int, Expression]:
        """The expression of each attention's interface."""
        return {module: _interface(attention) for module, attention in self.calls.items()}

    def of_layers(self, stack: Stack) -> dict[int, AttentionCall]:
        """The call of the self-attention in each layer of a stack that has one."""
        by_layer: dict[int, AttentionCall] = {}
        for layer, block in enumerate(stack.blocks):
            for module in block.modules():
                if id(module) in self.calls and isinstance(module, Mixer):
                    by_layer.setdefault(layer, self.calls[id(module)])
        return by_layer

    def served(self, spec: Model, stack: Stack) -> bool:
        """Whether an engine can take the place of the attentions: one in each layer, whose scores are products alone."""
        layers = self.of_layers(stack)
        sizes = {
            (attention.heads, attention.key_heads, attention.width, attention.value_width)
            for attention in layers.values()
        }
        plain = all(
            attention.masked_only
            and not attention.has_sinks
            and attention.own_keys
            and (attention.causal or attention.window is None)
            for attention in layers.values()
        )
        states = [[tensor.name for tensor in state] for state in stack.states]
        return (
            spec.architecture in ("decoder", "encoder")
            and len(layers) == len(stack.blocks) == len(self.calls)
            and not self.repeated
            and plain
            and all(width == value for _, _, width, value in sizes)
            and len(sizes) == 1
            and (not spec.decodes or states == [["key", "value"]] * len(layers))
        )


def _interface(attention: AttentionCall) -> Expression:
    options: dict[str, Expression] = {}
    if attention.heads != attention.key_heads:
        options["groups"] = str(attention.heads // attention.key_heads)
    if attention.causal:
        options["causal"] = "True"
    if attention.window is not None:
        options["window"] = str(attention.window)
    return call("AttentionInterface", repr(attention.scale), **options)


def state_names(stack: Stack) -> list[tuple[str, ...]]:
    """The names of the tensors that each layer carries: "key" and "value" for the tensors of one attention, which caches hold."""
    return [_names(state) for state in stack.states]


def _names(state: Sequence[Any]) -> tuple[str, ...]:
    pair = [tensor.name for tensor in state if tensor.grows]
    held = pair == ["key", "value"] and all(len(tensor.dims) == 3 for tensor in state if tensor.grows)
    names: list[str] = []
    for tensor in state:
        name = tensor.name if held or tensor.name not in ("key", "value") else f"all_{tensor.name}s"
        while name in names:
            name += "_"
        names.append(name)
    return tuple(names)


def cached_windows(stack: Stack, attentions: Attentions) -> dict[int, int | None]:
    """The window of each layer with keys and values, beyond which its cache keeps nothing; caches keep a token at least.

    Where layers read the keys of others, all are kept.
    """
    layers, names = attentions.of_layers(stack), state_names(stack)
    shares = any(not names[layer] for layer in layers)
    windows: dict[int, int | None] = {}
    for layer, state in enumerate(names):
        if "key" in state:
            attention = layers.get(layer)
            bounded = (
                attention is not None
                and attention.causal
                and attention.masked
                and attention.window not in (None, 1)
                and not shares
            )
            windows[layer] = attention.window if attention is not None and bounded else None
    return windows
