"""Emitters: one per operation of :mod:`zoo.ops`, which writes it in ONNX. The files of this folder register them."""

import pkgutil
from importlib import import_module

from exporters.graph.emitters.registry import Call, Operand, emits, emitter_of

__all__ = ["Call", "Operand", "emits", "emitter_of"]

for _file in pkgutil.iter_modules(__path__):
    import_module(f"{__name__}.{_file.name}")
