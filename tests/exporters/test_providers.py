"""The providers for a device, and the options of their sessions."""

from __future__ import annotations

import pytest

from exporters.providers import CPU, CUDA, PROVIDERS, TENSORRT, on_device, present, with_options
from exporters.targets import TARGETS
from specs.errors import UserError
from zoo import certificate

GPU = CUDA in present([CUDA])


def test_the_cpu_runs_every_export() -> None:
    assert on_device(TARGETS["cuda"].providers, "cpu") == [CPU]


@pytest.mark.skipif(GPU, reason="a GPU is here")
@pytest.mark.parametrize(
    ("target", "needed"), [("cpu", CUDA), ("cuda", CUDA), ("tensorrt", f"{TENSORRT} or {CUDA}")]
)
def test_a_device_that_this_machine_does_not_have(target: str, needed: str) -> None:
    with pytest.raises(UserError) as error:
        on_device(TARGETS[target].providers, "cuda")
    assert str(error.value) == (
        f"device cuda needs {needed}, which ONNX Runtime cannot load on this machine.\n"
        "  Install onnxruntime-gpu and the driver, or use device cpu."
    )


def test_an_unknown_device() -> None:
    with pytest.raises(
        UserError, match=r"device must be the name of a device\.\n  value: 'cudda'\n  Did you mean 'cuda'\?"
    ):
        on_device([CPU], "cudda")


def test_float32_is_not_rounded_to_tf32() -> None:
    assert with_options([CUDA, CPU, "Other"]) == [(CUDA, {"use_tf32": "0"}), (CPU, {}), ("Other", {})]


def test_the_certificate_which_stands_alone_has_the_same_options() -> None:
    assert dict(certificate.PROVIDERS.values()) == {name: each.options for name, each in PROVIDERS.items()}
