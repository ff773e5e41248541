"""Machines that models run on: how much memory there is, how fast it is read, and how fast matrices are multiplied."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field, ValidationError

from specs.base import PositiveFloat, Spec
from specs.errors import UserError
from specs.suggest import did_you_mean

DEVICES = Path(__file__).parent / "devices"

FloatPrecision = Literal["fp32", "fp16", "bf16"]


class Device(Spec):
    """A device, as its maker states it."""

    name: Annotated[str, Field(pattern=r"^[\w.+-]+$")]
    """Name of the device in tables: letters, digits and `. _ + -`."""
    summary: str = ""
    """One line about the device."""
    source: str = ""
    """Where the figures are published."""
    memory: PositiveFloat
    """Memory in bytes."""
    bandwidth: PositiveFloat
    """Memory bandwidth in bytes per second."""
    flops: Annotated[dict[FloatPrecision, PositiveFloat], Field(min_length=1)]
    """Peak FLOPs per second of dense matrix products, in each precision that the device has."""


def device_names() -> list[str]:
    """The devices that are known by name, the one with the most memory first."""
    return [
        device.name for device in sorted(map(_read, DEVICES.glob("*.yaml")), key=lambda each: -each.memory)
    ]


def load_device(reference: str | os.PathLike[str]) -> Device:
    """The device of a name or a YAML file.

    Raises :class:`specs.errors.UserError` for an unknown one, and :class:`specs.errors.SpecError` with every problem of a file.
    """
    given = os.fspath(reference)
    if (DEVICES / f"{given}.yaml").is_file() and os.sep not in given:
        return _read(DEVICES / f"{given}.yaml")
    if Path(given).suffix in (".yaml", ".yml") or Path(given).is_file():
        return _read(Path(given))
    remedy = did_you_mean(given, [*device_names(), "this"])
    raise UserError(
        f"a device must be a known one, this, or a file\n  value: {given!r}\n  {remedy}\n  or give the path of a YAML file"
    )


def _read(path: Path) -> Device:
    from specs.errors import SpecError
    from specs.spec_file import read_file
    from specs.validation import problems

    document = read_file(path)
    try:
        return Device.model_validate(document.data)
    except ValidationError as error:
        raise SpecError(problems(error, document, Device)) from None
