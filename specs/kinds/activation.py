"""The activations of a feed-forward, a pooler or a transform."""

from typing import Annotated, Literal

from specs.base.descriptions import ValueDescriptions

Activation = Annotated[
    Literal[
        "relu", "relu2", "gelu", "gelu_tanh", "quick_gelu", "silu", "tanh", "sigmoid", "identity", "xielu"
    ],
    ValueDescriptions(
        {
            "relu": "The rectifier: max(x, 0).",
            "relu2": "The squared rectifier: max(x, 0)^2 (Primer; Nemotron).",
            "gelu": "The exact GELU: x times the standard normal CDF of x, by erf (Hendrycks and Gimpel, 2016).",
            "gelu_tanh": "The tanh approximation of GELU (`gelu_new` and `gelu_pytorch_tanh` in Hugging Face).",
            "quick_gelu": "`x * sigmoid(1.702 * x)`, the sigmoid approximation of GELU (CLIP).",
            "silu": "`x * sigmoid(x)`, also called swish.",
            "tanh": "The hyperbolic tangent.",
            "sigmoid": "The logistic function.",
            "identity": "No activation: x itself.",
            "xielu": "Squared for positive x, an ELU minus x for the others, each times a trained factor, plus x / 2 "
            "(Huang and Schlag, 2024; Apertus). Not for experts.",
        }
    ),
]

ACTIVATION_TITLES = {
    "relu": "ReLU",
    "relu2": "ReLU\u00b2",
    "gelu": "GELU",
    "gelu_tanh": "GELU (tanh)",
    "quick_gelu": "quick GELU",
    "silu": "SiLU",
    "tanh": "tanh",
    "sigmoid": "sigmoid",
    "identity": "no activation",
    "xielu": "xIELU",
}

GATE_TITLES = {
    "silu": "SwiGLU",
    "gelu": "GeGLU",
    "gelu_tanh": "GeGLU (tanh)",
    "quick_gelu": "GeGLU (quick)",
    "relu": "ReGLU",
    "relu2": "ReGLU (squared)",
    "sigmoid": "GLU",
    "tanh": "GLU with tanh",
    "identity": "bilinear",
    "xielu": "GLU with xIELU",
}
"""Gated feed-forwards by their activation (Shazeer, 2020)."""

ACTIVATIONS: dict[str, Activation] = {
    "gelu": "gelu",
    "gelu_new": "gelu_tanh",
    "gelu_pytorch_tanh": "gelu_tanh",
    "gelu_fast": "gelu_tanh",
    "gelu_python": "gelu",
    "relu": "relu",
    "relu2": "relu2",
    "silu": "silu",
    "swish": "silu",
    "quick_gelu": "quick_gelu",
    "tanh": "tanh",
    "sigmoid": "sigmoid",
    "linear": "identity",
}
"""The names of activations in configs (``transformers.activations``), and ours."""
