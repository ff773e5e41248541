"""Providers by name, those of plugins among them, and the options of their sessions."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from exporters.export import export
from exporters.steps.options import ExportOptions
from exporters.target.providers import (
    CPU,
    CUDA,
    PROVIDERS,
    known_providers,
    on_provider,
    plugin_devices,
    plugins,
    present,
    with_options,
)
from specs.base.errors import UserError
from specs.language.load import load
from zoo.record import certificate

GPU = CUDA in present([CUDA])


@pytest.mark.parametrize("name", ["cpu", "CPU", CPU])
def test_a_provider_is_named_in_short_or_in_full(name: str) -> None:
    assert on_provider(name) == [CPU]


def test_every_provider_of_the_build_can_be_named() -> None:
    assert {"cpu", "cuda", "tensorrt"} <= set(known_providers())


@pytest.mark.skipif(GPU, reason="a GPU is here")
@pytest.mark.parametrize("name", ["cuda", "tensorrt"])
def test_a_provider_without_its_driver(name: str) -> None:
    with pytest.raises(UserError) as error:
        on_provider(name)
    assert str(error.value) == (
        f"provider {name} needs a driver, which this machine lacks.\n"
        "  Install the driver of the device, or use provider cpu."
    )


def test_an_unknown_provider() -> None:
    with pytest.raises(
        UserError,
        match=r"provider must be the name of a provider\.\n  value: 'cudda'\n  Did you mean 'cuda'\?",
    ):
        on_provider("cudda")


@pytest.fixture
def plugin(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """A package as plugins are packaged, with a library that ONNX Runtime takes: its own CPU provider's devices remain."""
    module = tmp_path / "onnxruntime_ep_elsewhere"
    module.mkdir()
    (module / "__init__.py").write_text(
        'def get_ep_name():\n    return "ElsewhereExecutionProvider"\n\n'
        'def get_library_path():\n    return "/no/such/library.so"\n'
    )
    monkeypatch.syspath_prepend(tmp_path)
    plugins.cache_clear()
    yield "elsewhere"
    plugins.cache_clear()
    sys.modules.pop(module.name, None)


def test_plugins_are_found_by_their_packages(plugin: str) -> None:
    assert plugins()["ElsewhereExecutionProvider"] == "/no/such/library.so"
    assert plugin in known_providers()


def test_a_plugin_whose_library_does_not_load(plugin: str) -> None:
    with pytest.raises(UserError, match="provider elsewhere: its library does not load: ") as error:
        on_provider(plugin)
    assert "/no/such/library.so" in str(error.value)


def test_a_name_that_is_no_plugin_has_no_devices() -> None:
    assert plugin_devices(CPU) == ()


def test_an_export_is_verified_on_the_provider_that_is_named(tmp_path: Path) -> None:
    written = export(load("tiny-gpt"), tmp_path / "x", ExportOptions(target="cuda", provider="cpu"))
    assert written.verification is not None
    assert (written.verification.provider, written.verification.not_run) == (CPU, None)
    assert written.manifest.providers == (CUDA, CPU)
    with pytest.raises(UserError, match="must be the name of a provider"):
        ExportOptions(provider="none")


def test_float32_is_not_rounded_to_tf32() -> None:
    assert with_options([CUDA, CPU, "Other"]) == [(CUDA, {"use_tf32": "0"}), (CPU, {}), ("Other", {})]


def test_the_certificate_which_stands_alone_has_the_same_options() -> None:
    assert dict(certificate.PROVIDERS.values()) == {name: each.options for name, each in PROVIDERS.items()}
