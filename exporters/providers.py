"""Which of a target's providers are here."""

from __future__ import annotations

import ctypes
import functools

from exporters.targets import Target

CPU = "CPUExecutionProvider"

DRIVERS = ("libcuda.so.1", "nvcuda.dll")
"""What a machine with an NVIDIA GPU has: without it, providers that need one are built in, and fail to load."""


def present(target: Target) -> list[str]:
    """The providers of a target that can be tried on this machine, in order of preference; the CPU's if no other."""
    import onnxruntime

    built_in = onnxruntime.get_available_providers()
    usable = [provider for provider in target.providers if provider == CPU or _has_driver()]
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
