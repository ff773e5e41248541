"""The smallest mesh with room for a model, and meshes as text."""

from __future__ import annotations

from collections.abc import Iterator

from specs.base.errors import UserError
from specs.files.device import Device
from zoo.parallel.mesh import check_names
from zoo.parallel.on_paper import ModelOnPaper, OnPaper, Work

LARGEST = 4096
"""The most devices that are tried."""


def smallest(model: ModelOnPaper, device: Device, batch: int, length: int, work: Work) -> OnPaper:
    """The mesh of the fewest devices that has room, and of several the one with the least bound on a step.

    tp stays within a node.  Raises :class:`specs.base.errors.UserError` where none of up to 4096 devices has.
    """
    count = 1
    while count <= LARGEST:
        fitting = [mesh for mesh in _meshes(model, device, batch, length, count, work) if mesh.fits(work)]
        if fitting:
            return min(fitting, key=lambda mesh: (mesh.bound[0], mesh["pp"], mesh["tp"]))
        count *= 2
    raise UserError(
        f"No mesh of up to {LARGEST} devices has room.\n  value: {device.name}, batch {batch}, length {length}\n"
        "  Use a smaller batch or length, or a device with more memory."
    )


def _meshes(
    model: ModelOnPaper, device: Device, batch: int, length: int, count: int, work: Work
) -> Iterator[OnPaper]:
    fitting = set(model.plan.degrees(device.per_node))
    for tp in (2**power for power in range(count.bit_length())):
        for pp in (2**power for power in range((count // tp).bit_length())):
            dp = count // tp // pp
            if tp not in fitting or (work == "serve" and dp > 1):
                continue
            try:
                yield model.on({"dp": dp, "tp": tp, "pp": pp}, device, batch, length)
            except UserError:
                continue


def splits(model: ModelOnPaper, device: Device, batch: int, length: int, count: int) -> list[OnPaper]:
    """The meshes of ``count`` devices that a model can be cut along, with and without room; tp stays within a node."""
    fitting, meshes = set(model.plan.degrees(device.per_node)), []
    for tp in (degree for degree in range(1, count + 1) if count % degree == 0 and degree in fitting):
        for pp in (degree for degree in range(1, count // tp + 1) if (count // tp) % degree == 0):
            try:
                meshes.append(model.on({"dp": count // tp // pp, "tp": tp, "pp": pp}, device, batch, length))
            except UserError:
                break  # nor more stages
    return meshes


def mesh_degrees(text: str) -> dict[str, int]:
    """The degrees in ``dp=8,tp=4,pp=2``. Raises :class:`specs.base.errors.UserError`."""
    sizes: dict[str, int] = {}
    for part in text.split(","):
        name, _, size = part.partition("=")
        if not size.strip().isdecimal() or name.strip() in sizes:
            raise UserError(
                f"A mesh is a list of dims and their sizes, each once.\n  value: {text!r}\n  Write it as dp=8,tp=4,pp=2."
            )
        sizes[name.strip()] = int(size)
    return check_names(sizes)
