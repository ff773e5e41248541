"""Which providers are here."""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Iterable

CPU = "CPUExecutionProvider"

DRIVERS = ("libcuda.so.1", "nvcuda.dll")
"""What a machine with an NVIDIA GPU has: without it, providers that need one are built in, and fail to load."""


def present(wanted: Iterable[str]) -> list[str]:
    """Those of some providers that can be tried on this machine, in the same order; the CPU's if no other."""
    import onnxruntime

    built_in = onnxruntime.get_available_providers()
    usable = [provider for provider in wanted if provider == CPU or _has_driver()]
    return [provider for provider in usable if provider in built_in] or [CPU]


@functools.cache
def _has_driver() -> bool:
    for name in DRIVERS:
        try:
            ctypes.CDLL(name)
        except OSError:
            continue
        return True
    return False
