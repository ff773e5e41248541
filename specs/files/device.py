"""Devices that models run on: memory size, memory bandwidth and peak FLOPs."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field, ValidationError

from specs.base.base import PositiveFloat, Spec
from specs.base.errors import UserError
from specs.base.suggest import suggestion

DEVICES = Path(__file__).parents[1] / "devices"

FloatPrecision = Literal["fp32", "fp16", "bf16"]


class Device(Spec):
    """The specifications of a device, as published by its maker."""

    name: Annotated[str, Field(pattern=r"^[\w.+-]+$")]
    """Name of the device in tables: letters, digits and `. _ + -`."""
    summary: str = ""
    """One line about the device."""
    source: str = ""
    """Source of the figures."""
    memory: PositiveFloat
    """Memory in bytes."""
    bandwidth: PositiveFloat
    """Memory bandwidth in bytes per second."""
    link: PositiveFloat | None = None
    """Bandwidth to another device of the same node, in bytes per second in one direction."""
    network: PositiveFloat | None = None
    """Bandwidth of a device to other nodes, in bytes per second in one direction."""
    per_node: Annotated[int, Field(ge=1)] = 1
    """Number of devices in a node."""
    flops: Annotated[dict[FloatPrecision, PositiveFloat], Field(min_length=1)]
    """Peak FLOPs per second of dense matrix products in each supported precision."""


def device_names() -> list[str]:
    """The built-in devices, largest memory first."""
    return [
        device.name
        for device in sorted(map(_read, DEVICES.glob("*.yaml")), key=lambda device: -device.memory)
    ]


def load_device(reference: str | os.PathLike[str]) -> Device:
    """Read a device by name or from a YAML file.

    Raises :class:`specs.base.errors.UserError` for an unknown device, and :class:`specs.base.errors.SpecError` with every problem
    of a file.
    """
    name = os.fspath(reference)
    if (DEVICES / f"{name}.yaml").is_file() and os.sep not in name:
        return _read(DEVICES / f"{name}.yaml")
    if Path(name).suffix in (".yaml", ".yml") or Path(name).is_file():
        return _read(Path(name))
    remedy = suggestion(name, [*device_names(), "this"])
    raise UserError(
        f"A device must be a known name, `this`, or a file.\n  value: {name!r}\n  {remedy}\n  Or pass the path of a YAML file."
    )


def _read(path: Path) -> Device:
    from specs.base.errors import SpecError
    from specs.language.spec_file import read_file
    from specs.language.validation import problems

    document = read_file(path)
    try:
        return Device.model_validate(document.data)
    except ValidationError as error:
        raise SpecError(problems(error, document, Device)) from None
