"""The activations of a feed-forward, a pooler or a transform."""

from typing import Literal

Activation = Literal["relu", "gelu", "gelu_tanh", "quick_gelu", "silu", "tanh", "sigmoid", "identity"]
"""`gelu` is the exact form (erf), `gelu_tanh` its tanh approximation, `quick_gelu` is x * sigmoid(1.702 x)."""
