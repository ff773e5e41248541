"""What engines and configs know of the attentions in a stack."""

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
        found: dict[int, AttentionCall] = {}
        repeated = False
        for each in calls:
            module = model.get_submodule(each.path)
            known = found.setdefault(id(module), each)
            repeated = repeated or known is not each or not each.path
            if known != each:
                raise RemoteCodeError(
                    f"{type(module).__name__} calls attention in two ways, which remote code cannot tell apart\n"
                    "  Give each a module of its own."
                )
        return cls(found, repeated)

    def interfaces(self) -> dict[int, Expression]:
        """The expression of each attention's interface."""
        return {module: _interface(each) for module, each in self.calls.items()}

    def of_layers(self, stack: Stack) -> dict[int, AttentionCall]:
        """The call of the self-attention in each layer of a stack that has one."""
        found: dict[int, AttentionCall] = {}
        for layer, block in enumerate(stack.blocks):
            for module in block.modules():
                if id(module) in self.calls and isinstance(module, Mixer):
                    found.setdefault(layer, self.calls[id(module)])
        return found

    def served(self, spec: Model, stack: Stack) -> bool:
        """Whether an engine can take the place of the attentions: one in each layer, whose scores are products alone."""
        layers = self.of_layers(stack)
        sizes = {(each.heads, each.key_heads, each.width, each.value_width) for each in layers.values()}
        plain = all(
            each.masked_only and not each.has_sinks and each.own_keys and (each.causal or each.window is None)
            for each in layers.values()
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


def _interface(each: AttentionCall) -> Expression:
    options: dict[str, Expression] = {}
    if each.heads != each.key_heads:
        options["groups"] = str(each.heads // each.key_heads)
    if each.causal:
        options["causal"] = "True"
    if each.window is not None:
        options["window"] = str(each.window)
    return call("AttentionInterface", repr(each.scale), **options)


def state_names(stack: Stack) -> list[tuple[str, ...]]:
    """The names of the tensors that each layer carries: "key" and "value" for those of one attention, which caches hold."""
    return [_names(state) for state in stack.states]


def _names(state: Sequence[Any]) -> tuple[str, ...]:
    pair = [each.name for each in state if each.grows]
    held = pair == ["key", "value"] and all(len(each.dims) == 3 for each in state if each.grows)
    names: list[str] = []
    for each in state:
        name = each.name if held or each.name not in ("key", "value") else f"all_{each.name}s"
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
            each = layers.get(layer)
            bounded = (
                each is not None
                and each.causal
                and each.masked
                and each.window not in (None, 1)
                and not shares
            )
            windows[layer] = each.window if each is not None and bounded else None
    return windows
