"""The state settings of onnxruntime-genai 0.18, and the states that it supports.

Its model type ``decoder`` gives every layer with a constant-size state two tensors, the first for a convolution; its type
``lfm2`` gives every layer without a cache one tensor.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from exporters.layouts.layout import Data, named
from zoo.components.mixer import StateTensor
from zoo.core.state_names import MOMENTS, state_name

States = Sequence[Sequence[StateTensor]]

CONVOLUTION = "conv"


@dataclass(frozen=True)
class GenaiStates:
    """The client's model type, the names of its inputs and outputs, and further settings."""

    type: str
    inputs: Data
    outputs: Data
    facts: Data


def unfit_states(states: States) -> str | None:
    """Return the reason why the client cannot hold the state of a decoder; None if it can."""
    for layer in states:
        growing = {tensor.name: tensor.dims[-1] for tensor in layer if tensor.grows}
        if growing and growing.keys() != {"key", "value"}:
            return f"it expects a key and a value where a cache grows, and a layer has {named(layer)}"
        if len(set(growing.values())) > 1:
            key, value = growing.values()
            return f"it expects keys and values of equal width, and their widths are {key} and {value}"
    kinds = list(dict.fromkeys(filter(None, map(_constant, states))))
    if len(kinds) > 1:
        return f"it gives all layers states of one shape, and this model has {_state_words(kinds)}"
    if not kinds:
        return None
    (kind,) = kinds
    if kind[0].name != CONVOLUTION or len(kind[0].dims) != 2 or len(kind) > 2:
        return f"it expects a state of a convolution and at most one more, and a layer has {named(kind)}"
    if len(kind) == 1 and any(_constant(layer) and len(layer) > 1 for layer in states):
        return f"it expects a cache or the state of a convolution in a layer, and one has {named(max(states, key=len))}"
    return None


def _constant(layer: Sequence[StateTensor]) -> tuple[StateTensor, ...]:
    return tuple(tensor for tensor in layer if not tensor.grows)


def _state_words(kinds: Sequence[Sequence[StateTensor]]) -> str:
    return " and ".join(
        ", ".join(f"{tensor.name} {' x '.join(map(str, tensor.dims))}" for tensor in kind)
        for kind in kinds[:2]
    )


def genai_states(states: States) -> GenaiStates:
    """The client's settings for the states that :func:`unfit_states` accepts."""
    held = next(filter(None, map(_constant, states)), ())
    names = {"key": ("key", True), "value": ("value", True)}
    names |= {word: (tensor.name, False) for tensor, word in zip(held, ("conv", "recurrent"), strict=False)}
    inputs, outputs = (
        {
            f"{moment}_{word}_names": state_name(moment, "%d", name, grows=grows)
            for word, (name, grows) in names.items()
        }
        for moment in MOMENTS
    )
    if len(held) != 1:
        return GenaiStates("decoder", inputs, outputs, {})
    kinds = ["conv" if _constant(layer) else "full_attention" for layer in states]
    return GenaiStates("lfm2", inputs, outputs, {"layer_types": kinds, "conv_cache_size": held[0].dims[-1]})
