"""The activations of configs."""

from __future__ import annotations

from specs.activation import Activation
from zoo.configs.config import Config

ACTIVATIONS: dict[str, Activation] = {
    "gelu": "gelu",
    "gelu_new": "gelu_tanh",
    "gelu_pytorch_tanh": "gelu_tanh",
    "gelu_fast": "gelu_tanh",
    "gelu_python": "gelu",
    "relu": "relu",
    "silu": "silu",
    "swish": "silu",
    "quick_gelu": "quick_gelu",
    "tanh": "tanh",
    "sigmoid": "sigmoid",
    "linear": "identity",
}
"""The names that configs give activations (``transformers.activations``), and ours.  The first of several is written."""


def read_activation(config: Config, name: str, default: str) -> Activation:
    """The activation of a field."""
    return config.choice(name, ACTIVATIONS, default)


def write_activation(activation: Activation) -> str:
    """The name of an activation in a config."""
    return next(theirs for theirs, ours in ACTIVATIONS.items() if ours == activation)
