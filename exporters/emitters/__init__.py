"""One emitter per traced function: from its arguments to ONNX operations."""

from exporters.emitters import arithmetic, layers, rearranging, sizes
from exporters.emitters.registry import Call, emitter_of, emits

__all__ = ["Call", "arithmetic", "emits", "emitter_of", "layers", "rearranging", "sizes"]
