"""The tables of ``zoo report --mesh`` and ``--fit``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cli.terminal.render import Cell, Column, print_table, say
from cli.terminal.screen import Screen, bad, good
from zoo.core.units import byte_text, time_text

if TYPE_CHECKING:
    from zoo.parallel.on_paper import OnPaper, Work

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


def print_mesh_rows(screen: Screen, mesh: OnPaper) -> None:
    """Print in rows whether the model fits, what a device sends, and what bounds a training step."""
    screen.title(
        mesh.model.plan.spec.name,
        f"{mesh_text(mesh)} on {mesh.devices:,} x {mesh.device.name}",
        f"{mesh.model.precision}, {mesh.batch:,} x {mesh.length:,} tokens per group and step",
    )
    room = f"of {byte_text(mesh.device.memory)} per device"
    parts = [f"{TITLES[part]} {byte_text(size)}" for part, size in mesh.memory.items() if size]
    screen.row("train", _need(mesh, "train", room), ", ".join(parts))
    serving = ", ".join(f"{part} {byte_text(size)}" for part, size in mesh.serving.items())
    screen.row("serve", _need(mesh, "serve", room), serving)
    sent = [
        f"{traffic.dim}: {byte_text(traffic.bytes)} by {traffic.link}"
        + ("" if traffic.seconds is None else f", at least {time_text(traffic.seconds)}")
        for traffic in mesh.traffic
    ]
    screen.row("sends", *(sent or ["nothing: one device"]))
    seconds, bound = mesh.bound
    waits = f"; stages wait {mesh.idle:.0%} of the time" if mesh["pp"] > 1 else ""
    screen.row("step", f"at least {time_text(seconds)}, bound by {bound}{waits}")


def _need(mesh: OnPaper, work: Work, room: str) -> list[str | Cell]:
    verdict = good(", fits") if mesh.fits(work) else bad(", does not fit")
    return [f"{byte_text(mesh.bytes_of(work))} {room}", verdict]


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
