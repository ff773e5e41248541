"""The tables of ``zoo report --mesh`` and ``--fit``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cli.terminal.render import Column, print_table, say
from zoo.core.units import byte_text, time_text

if TYPE_CHECKING:
    from zoo.parallel.on_paper import OnPaper

TITLES = {
    "weights": "weights",
    "gradients": "gradients",
    "adam_moments": "Adam's moments",
    "master_weights": "float32 copy of weights",
    "gathered_blocks": "gathered blocks",
    "activations": "activations, checkpointed",
}


def mesh_text(mesh: OnPaper) -> str:
    """A mesh as it is given, such as ``dp=8,tp=4,pp=2``."""
    return ",".join(f"{name}={size}" for name, size in mesh.degrees.items())


def print_mesh(mesh: OnPaper) -> None:
    """Print the memory of a device, what it sends in a step, and what bounds the step."""
    name = mesh.model.plan.spec.name
    say(
        f": {mesh_text(mesh)}, {mesh.devices:,} x {mesh.device.name}, {mesh.model.precision}; "
        f"{mesh.batch:,} x {mesh.length:,} tokens per data-parallel group and step",
        lead=name,
    )
    _print_memory(mesh)
    _print_traffic(mesh)
    _print_bound(mesh)


def _print_memory(mesh: OnPaper) -> None:
    say()
    say(f": {byte_text(mesh.device.memory)} each", lead="Memory per device")
    rows = [(TITLES[part], byte_text(size)) for part, size in mesh.memory.items() if size]
    rows.append(("to train", f"{byte_text(mesh.bytes_of('train'))}{_fits(mesh.fits('train'))}"))
    serving = mesh.serving
    rows.append(
        (
            f"to serve: weights {byte_text(serving['weights'])}, cache {byte_text(serving['cache'])}",
            f"{byte_text(mesh.bytes_of('serve'))}{_fits(mesh.fits('serve'))}",
        )
    )
    print_table(["memory", Column("bytes", right=True)], rows)


def _fits(fits: bool) -> str:
    return "" if fits else " (too much)"


def _print_traffic(mesh: OnPaper) -> None:
    say()
    say(": bytes that each device sends in a training step", lead="Communication")
    rows = [
        (
            traffic.dim,
            traffic.what,
            traffic.link,
            byte_text(traffic.bytes),
            "unknown" if traffic.seconds is None else time_text(traffic.seconds),
        )
        for traffic in mesh.traffic
    ]
    columns: list[Column | str] = [
        "dim",
        "what",
        "link",
        Column("bytes", right=True),
        Column("at least", right=True),
    ]
    if rows:
        print_table(columns, rows)
    else:
        say("None: one device.")


def _print_bound(mesh: OnPaper) -> None:
    seconds, bound = mesh.bound
    computing = "unknown" if mesh.computing is None else time_text(mesh.computing)
    say()
    say(
        f": at least {time_text(seconds)}, bound by {bound}; matrix products take {computing}"
        + (f", and stages wait {mesh.idle:.0%} of the time" if mesh["pp"] > 1 else ""),
        lead="Training step",
    )
    replicated = len(mesh.model.plan.replicated)
    if mesh["tp"] > 1:
        say(
            f"{replicated:,} weights are on every tensor-parallel rank, such as {mesh.model.plan.replicated[0]}."
        )
