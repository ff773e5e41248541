"""The environment variables that ONNX Runtime requires for a graph; imports no torch, because ``zoo run`` does not need it."""

from __future__ import annotations

RELEASED_OPSET = 26
"""The last opset that ONNX Runtime accepts without :data:`UNRELEASED`."""

UNRELEASED = {"ALLOW_RELEASED_ONNX_OPSET_ONLY": "0"}
"""The environment variables for opsets after the last released one."""


def required_environment(opset: int) -> dict[str, str]:
    """The environment variables that ONNX Runtime requires for a graph of this opset."""
    return UNRELEASED if opset > RELEASED_OPSET else {}
