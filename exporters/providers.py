"""Execution providers of ONNX Runtime: those that can be tried here, and the device of their tensors."""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True)
class Provider:
    """An execution provider: the device of its tensors, and the libraries it loads, one of which must be present.

    Without any of them, the provider is listed by ONNX Runtime but fails to load.
    """

    name: str
    device: str
    libraries: tuple[str, ...] = ()


CPU = "CPUExecutionProvider"
CUDA = "CUDAExecutionProvider"
TENSORRT = "TensorrtExecutionProvider"

PROVIDERS = {
    provider.name: provider
    for provider in (
        Provider(CPU, "cpu"),
        Provider(CUDA, "cuda", ("libcuda.so.1", "nvcuda.dll")),
        Provider(TENSORRT, "cuda", ("libnvinfer.so.10", "nvinfer_10.dll")),
    )
}


def present(wanted: Iterable[str]) -> list[str]:
    """The providers among ``wanted`` that this machine can try, in the same order; the CPU's if there are no others."""
    import onnxruntime

    built_in = onnxruntime.get_available_providers()
    return [provider for provider in wanted if provider in built_in and _can_load(provider)] or [CPU]


def device_of(provider: str) -> str:
    """The device of a provider's tensors; the CPU for a provider without a row."""
    return PROVIDERS[provider].device if provider in PROVIDERS else "cpu"


@functools.cache
def _can_load(provider: str) -> bool:
    libraries = PROVIDERS[provider].libraries if provider in PROVIDERS else ()
    for library in libraries:
        try:
            ctypes.CDLL(library)
        except OSError:
            continue
        return True
    return not libraries
