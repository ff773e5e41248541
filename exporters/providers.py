"""Which providers are here."""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Iterable

CPU = "CPUExecutionProvider"

LIBRARIES = {
    "CUDAExecutionProvider": ("libcuda.so.1", "nvcuda.dll"),
    "TensorrtExecutionProvider": ("libnvinfer.so.10", "nvinfer_10.dll"),
}
"""What a machine has where a provider can run: without any of these, it is built in, and fails to load."""


def present(wanted: Iterable[str]) -> list[str]:
    """Those of some providers that can be tried on this machine, in the same order; the CPU's if no other."""
    import onnxruntime

    built_in = onnxruntime.get_available_providers()
    return [provider for provider in wanted if provider in built_in and _can_load(provider)] or [CPU]


@functools.cache
def _can_load(provider: str) -> bool:
    for library in LIBRARIES.get(provider, ()):
        try:
            ctypes.CDLL(library)
        except OSError:
            continue
        return True
    return provider not in LIBRARIES
