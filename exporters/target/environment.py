"""The environment variables without which ONNX Runtime refuses a graph; needs no tensors, as ``zoo run`` needs none."""

from __future__ import annotations

RELEASED_OPSET = 26
"""The last opset that ONNX Runtime accepts without :data:`UNRELEASED`."""

UNRELEASED = {"ALLOW_RELEASED_ONNX_OPSET_ONLY": "0"}
"""The environment variables with which ONNX Runtime accepts later opsets."""


def required_environment(opset: int) -> dict[str, str]:
    """The environment variables without which ONNX Runtime refuses a graph of this opset."""
    return UNRELEASED if opset > RELEASED_OPSET else {}
