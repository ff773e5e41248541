"""Execution providers of ONNX Runtime: those that can be tried here, by name, and the device of their tensors.

Besides the rows below, every provider that the installed build has can be named, and every one that a package
``onnxruntime_ep_NAME`` brings as a plugin.
"""

from __future__ import annotations

import contextlib
import ctypes
import functools
import importlib
import io
import pkgutil
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from specs.base.errors import UserError, option_name, reason_of
from specs.base.suggest import suggestion


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

SUFFIX = "ExecutionProvider"

PLUGIN_MODULES = "onnxruntime_ep_"
"""How the modules of packages begin that bring a provider as a plugin."""


def present(wanted: Iterable[str]) -> list[str]:
    """The providers among ``wanted`` that this machine can try, in the same order; the CPU's if there are no others."""
    import onnxruntime

    built_in = onnxruntime.get_available_providers()
    return [provider for provider in wanted if provider in built_in and _can_load(provider)] or [CPU]


def provider_name(full: str) -> str:
    """The short name of a provider, such as ``cuda``."""
    return full.removesuffix(SUFFIX).lower()


def known_providers() -> list[str]:
    """The short names of the providers that can be named: rows, providers of the installed build, and plugins."""
    import onnxruntime

    return list(
        dict.fromkeys(map(provider_name, [*PROVIDERS, *onnxruntime.get_available_providers(), *plugins()]))
    )


def on_provider(name: str) -> list[str]:
    """The provider of a name, such as ``cuda`` or ``CUDAExecutionProvider``, then the CPU's, which runs what it lacks.

    Raises :class:`specs.base.errors.UserError` for an unknown provider, or one that this machine cannot load.
    """
    import onnxruntime

    built_in = onnxruntime.get_available_providers()
    named = {provider_name(full): full for full in (*plugins(), *built_in, *PROVIDERS)}
    full, option = named.get(provider_name(name)), option_name("provider")
    if full is None:
        raise UserError(
            f"{option} must be the name of a provider.\n  value: {name!r}\n  {suggestion(name, known_providers())}"
        )
    if full in built_in:
        if not _can_load(full):
            raise UserError(
                f"{option} {name} needs a driver, which this machine lacks.\n"
                f"  Install the driver of the device, or use {option} cpu."
            )
    elif full not in plugins():
        raise UserError(
            f"{option} {name}: this build of ONNX Runtime has no {full}.\n"
            f"  Install onnxruntime-gpu, or use {option} cpu."
        )
    elif not plugin_devices(full):
        raise UserError(
            f"{option} {name}: {full} finds no device on this machine.\n"
            f"  Install the driver of the device, or use {option} cpu."
        )
    return [full] if full == CPU else [full, CPU]


@functools.cache
def plugins() -> dict[str, str]:
    """The paths of the libraries of providers that packages bring as plugins, by the providers' names."""
    libraries = {}
    for module in pkgutil.iter_modules():
        if module.name.startswith(PLUGIN_MODULES):
            package: Any = importlib.import_module(module.name)
            libraries[package.get_ep_name()] = package.get_library_path()
    return libraries


@functools.cache
def plugin_devices(full: str) -> tuple[Any, ...]:
    """The devices on which a plugin provides; none for a name that is no plugin's."""
    import onnxruntime

    if full == CPU or full not in plugins():  # looking for plugins lists every installed module
        return ()
    try:
        onnxruntime.register_execution_provider_library(full, plugins()[full])
    except Exception as error:  # ONNX Runtime's errors have no common class
        raise UserError(
            f"{option_name('provider')} {provider_name(full)}: its library does not load: {reason_of(error)}\n"
            f"  Install the release of its package for onnxruntime {onnxruntime.__version__}."
        ) from None
    return tuple(device for device in onnxruntime.get_ep_devices() if device.ep_name == full)


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
