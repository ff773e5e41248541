"""Runs the studio's server until it is interrupted."""

from __future__ import annotations

import contextlib
import socket
import sys
import webbrowser
from dataclasses import replace
from pathlib import Path

from cli.terminal.render import print_json, say
from specs.base.errors import UserError

FIRST_PORT = 8642
"""The port that is tried first."""

_SWITCHING = 0.0005
"""Seconds for which a thread that computes keeps others waiting: those that pass on what another process has read, or send what is
computed, wait several times in an answer."""

_PORTS = 32
"""The number of ports that are tried."""


def serve(reference: str | None, port: int | None, *, browser: bool, as_json: bool = False) -> None:
    """Serve the page of a spec.  Raises :class:`UserError` for a wrong reference, a port in use, and missing packages."""
    try:
        import uvicorn

        from cli.studio.server import Studio
    except ModuleNotFoundError as error:
        if error.name not in ("starlette", "uvicorn"):
            raise
        raise UserError(
            f"{error.name} is not installed.\n  Install it with pip install 'zoo[studio]'."
        ) from None
    from cli.studio.opened_spec import FIRST, opened

    first, folder = opened(reference or FIRST), Path.cwd()
    if first.file:  # what it extends is relative to it
        folder = Path(first.file).resolve().parent
        first = replace(first, file=Path(first.file).name)
    with contextlib.closing(_listening(port)) as listener:
        studio = Studio(first, folder, listener.getsockname()[1])
        studio.warm_up()
        if as_json:
            print_json({"address": studio.address})
        else:
            say(f"zoo studio: {studio.address}")
            say("Only this machine can open it, with this address. Press Ctrl-C to end it.", "dim")
        if browser:
            with contextlib.suppress(webbrowser.Error):
                webbrowser.open(studio.address)
        config = uvicorn.Config(
            studio.app, log_level="error", access_log=False, server_header=False, lifespan="off"
        )
        server = uvicorn.Server(config)
        sys.stdout.flush()
        sys.setswitchinterval(_SWITCHING)
        with contextlib.suppress(KeyboardInterrupt):
            server.run(sockets=[listener])


def _listening(port: int | None) -> socket.socket:
    """A socket on the local address: at the port, or at the first free one."""
    wanted = [port] if port is not None else range(FIRST_PORT, FIRST_PORT + _PORTS)
    for number in wanted:
        # asyncio sends small pieces at once only on sockets that state TCP; else an answer waits 40 ms for the page's receipt
        listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
        if sys.platform != "win32":
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listener.bind(("127.0.0.1", number))
            listener.listen(64)
        except OSError:
            listener.close()
            continue
        return listener
    if port is None:
        raise UserError(
            f"No port from {FIRST_PORT} to {FIRST_PORT + _PORTS - 1} is free.\n  Pass --port with a free one."
        )
    raise UserError(f"--port {port} is in use.\n  Pass another port, or leave it out.")
