"""``zoo report --mesh`` and ``--fit``: a model on several devices."""

from __future__ import annotations

from collections.abc import Sequence

from cli.tables.mesh_tables import print_mesh, print_mesh_rows
from cli.terminal.render import print_json
from cli.terminal.screen import Screen
from specs.base.errors import UserError
from specs.files.device import load_device
from specs.model.model import Model
from zoo.parallel.on_paper import ModelOnPaper, Work
from zoo.parallel.smallest_mesh import mesh_degrees, smallest
from zoo.reports.lengths import Lengths

WORK = ("train", "serve")


def report_mesh(
    screen: Screen,
    spec: Model,
    lengths: Lengths,
    precision: str,
    devices: Sequence[str],
    mesh: str | None,
    fit: str | None,
) -> None:
    """Print the report of a mesh, given or found."""
    if mesh is not None and fit is not None:
        raise UserError("--mesh and --fit are mutually exclusive.\n  Leave one of them out.")
    if fit is not None and fit not in WORK:
        raise UserError(f"--fit must be {' or '.join(WORK)}.\n  value: {fit!r}\n  Pass --fit train.")
    if len(devices) != 1:
        raise UserError(
            f"A mesh is of one kind of device.\n  value: {len(devices)} devices\n  Pass --device once, such as --device h100."
        )
    (name,) = devices
    if name == "this":
        raise UserError(
            "A mesh needs a device with known links.\n  value: this\n  Pass --device h100, or a file."
        )
    model, device = ModelOnPaper(spec, precision), load_device(name)
    if mesh is not None:
        placed = model.on(mesh_degrees(mesh), device, lengths.batch, lengths.length)
    else:
        work: Work = "serve" if fit == "serve" else "train"
        placed = smallest(model, device, lengths.batch, lengths.length, work)
    if screen.as_json:
        print_json({"name": spec.name, **placed.as_dict()})
        return
    if screen.tables:
        print_mesh(placed)
    else:
        print_mesh_rows(screen, placed)
    screen.done(f"{spec.name} placed on {placed.devices:,} x {name}, on paper,")
