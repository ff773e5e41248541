"""Devices as data: those known by name, a user's own, and what is told of wrong ones."""

from __future__ import annotations

from pathlib import Path

import pytest

from specs.base.errors import SpecError, UserError
from specs.files.device import DEVICES, device_names, load_device


def test_the_devices_known_by_name() -> None:
    assert device_names() == ["h200", "h100", "a100", "l40s", "l4", "t4"]
    for name in device_names():
        device = load_device(name)
        assert device.name == name
        assert device.summary.startswith("NVIDIA")
        assert device.source.startswith("https://")
        assert device.flops["fp32"] < device.flops["fp16"]
    assert {path.stem for path in DEVICES.glob("*.yaml")} == set(device_names())
    assert "bf16" not in load_device("t4").flops


def test_a_file_of_ones_own(tmp_path: Path) -> None:
    path = tmp_path / "mine.yaml"
    path.write_text("name: mine\nmemory: 8.0e9\nbandwidth: 50.0e9\nflops: {fp32: 1.0e12}\n")
    device = load_device(path)
    assert (device.name, device.memory, device.bandwidth, device.flops) == ("mine", 8e9, 5e10, {"fp32": 1e12})


def test_an_unknown_name_gets_a_suggestion() -> None:
    with pytest.raises(UserError) as error:
        load_device("h10")
    assert str(error.value) == (
        "A device must be a known name, `this`, or a file.\n  value: 'h10'\n  Did you mean 'h100'?\n  Or pass the path of a YAML file."
    )


WRONG = [
    ("name: x\nmemory: 8.0e9\nbandwith: 1.0\nflops: {fp32: 1.0}\n", "bandwith: is not a known key\n  Did you mean 'bandwidth'?"),
    ("name: x\nmemory: -1.0\nbandwidth: 1.0\nflops: {fp32: 1.0}\n", "wrong.yaml:2:9: memory: must be greater than 0\n  value: -1.0"),
    ("name: x\nmemory: 1.0\nbandwidth: 1.0\nflops: {fp64: 1.0}\n", "must be 'fp32', 'fp16' or 'bf16'\n  value: 'fp64'"),
    ("name: x\nmemory: 1.0\nbandwidth: 1.0\nflops: {}\n", "flops: must have at least 1 item"),
    ("name: x\nmemory: 1.0\nbandwidth: 1.0\n", "flops: is required\n  Add flops."),
]  # fmt: skip


@pytest.mark.parametrize(("text", "message"), WRONG)
def test_errors_in_a_file_have_place_and_rule(text: str, message: str, tmp_path: Path) -> None:
    (tmp_path / "wrong.yaml").write_text(text)
    with pytest.raises(SpecError) as error:
        load_device(tmp_path / "wrong.yaml")
    assert message in str(error.value)


def test_a_file_that_is_not_there() -> None:
    with pytest.raises(SpecError, match=r"nowhere\.yaml: the file must exist"):
        load_device("nowhere.yaml")
