"""Execution providers of ONNX Runtime: those that can be tried here, and the device of their tensors."""

from __future__ import annotations

import contextlib
import ctypes
import functools
import io
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from specs.errors import UserError, option_name
from specs.suggest import suggestion


@dataclass(frozen=True)
class Provider:
    """An execution provider: the device of its tensors, the libraries it loads, one of which must be present, and the
    options of its sessions.

    Without any of the libraries, the provider is listed by ONNX Runtime but fails to load.
    """

    name: str
    device: str
    libraries: tuple[str, ...] = ()
    options: Mapping[str, str] = field(default_factory=dict)


CPU = "CPUExecutionProvider"
CUDA = "CUDAExecutionProvider"
TENSORRT = "TensorrtExecutionProvider"
WEBGPU = "WebGpuExecutionProvider"

PROVIDERS = {
    provider.name: provider
    for provider in (
        Provider(CPU, "cpu"),
        # Products of float32 would otherwise be rounded to TF32, with 10 bits of mantissa.
        Provider(CUDA, "cuda", ("libcuda.so.1", "nvcuda.dll"), {"use_tf32": "0"}),
        Provider(TENSORRT, "cuda", ("libnvinfer.so.10", "nvinfer_10.dll")),
        Provider(WEBGPU, "cpu"),  # it copies tensors itself
    )
}

DEVICES = tuple(dict.fromkeys(provider.device for provider in PROVIDERS.values()))
"""The devices that tensors can be on."""


def present(wanted: Iterable[str]) -> list[str]:
    """The providers among ``wanted`` that this machine can try, in the same order; the CPU's if there are no others."""
    import onnxruntime

    built_in = onnxruntime.get_available_providers()
    return [provider for provider in wanted if provider in built_in and _can_load(provider)] or [CPU]


def on_device(wanted: Iterable[str], device: str) -> list[str]:
    """The providers for a device: those among ``wanted`` with tensors on it, or else the one that runs any graph there; then
    the CPU's, which runs the operations that they lack.

    Raises :class:`specs.errors.UserError` for an unknown device, or one that this machine does not have.
    """
    if device not in DEVICES:
        raise UserError(
            f"{option_name('device')} must be the name of a device.\n  value: {device!r}\n  {suggestion(device, DEVICES)}"
        )
    if device == device_of(CPU):
        return [CPU]
    chosen = [provider for provider in wanted if device_of(provider) == device] or [CUDA]
    usable = [provider for provider in present(chosen) if device_of(provider) == device]
    if not usable:
        raise UserError(
            f"{option_name('device')} {device} needs {' or '.join(chosen)}, which ONNX Runtime cannot load on this machine.\n"
            f"  Install onnxruntime-gpu and the driver, or use {option_name('device')} cpu."
        )
    return [*usable, CPU]


def with_options(providers: Iterable[str]) -> list[tuple[str, dict[str, str]]]:
    """Each provider with the options of its sessions, as ONNX Runtime takes them."""
    return [
        (provider, dict(PROVIDERS[provider].options if provider in PROVIDERS else {}))
        for provider in providers
    ]


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
        _preload_cuda()
        return True
    return not libraries


@functools.cache
def _preload_cuda() -> None:
    """Load the CUDA libraries that Python packages carry, which the system does not find by itself."""
    import onnxruntime

    with contextlib.redirect_stdout(
        io.StringIO()
    ):  # it prints what it cannot find; loading a session says so, too
        onnxruntime.preload_dlls()
