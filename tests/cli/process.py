"""The real program, as a process.

Nothing here ends a process that takes long, for on a busy machine each does: the limit of a test is pytest's.
"""

from __future__ import annotations

import os
import pty
import select
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

ZOO = [sys.executable, "-c", "from cli.main import main; main()"]


def zoo(*arguments: str, **options: Any) -> subprocess.CompletedProcess[str]:
    """Run it to its end."""
    settings = {"capture_output": True, "encoding": "utf-8", **options}
    return subprocess.run([*ZOO, *arguments], check=False, **settings)


def tables(text: str) -> str:
    """What a command with ``-v`` printed, without its last lines: the time that it took, and what to do next."""
    return f"{text.rpartition(chr(10) * 2)[0]}\n"


def environment(**changes: str) -> dict[str, str]:
    """This process's environment with changes, and without what decides about colours and widths."""
    kept = {k: v for k, v in os.environ.items() if k not in ("COLUMNS", "NO_COLOR", "FORCE_COLOR", "TERM")}
    return {**kept, "PYTHONPATH": str(Path.cwd()), **changes}


def wait_for_handlers(process: subprocess.Popen[str]) -> None:
    """Wait until the program handles SIGTERM, and so SIGINT, itself; an earlier signal ends it as it ends any process."""
    bit = 1 << (signal.SIGTERM - 1)
    while True:
        assert process.poll() is None, process.communicate()
        status = Path(f"/proc/{process.pid}/status").read_text()
        if int(status.partition("SigCgt:")[2].split()[0], 16) & bit:
            return
        time.sleep(0.002)


def wait_for_end(process: int) -> None:
    """Wait until a process, which need not be a child of this one, has ended."""
    state = Path(f"/proc/{process}/stat")
    while True:
        try:
            if state.read_text().rpartition(")")[2].split()[0] == "Z":  # nobody has asked for its status
                return
        except OSError:
            return
        time.sleep(0.02)


def in_terminal(command: list[str], cwd: Path, **variables: str) -> tuple[str, str]:
    """What a command writes to a terminal on stdout, and to another on stderr."""
    streams = [pty.openpty() for _ in range(2)]
    settings = environment(**{"TERM": "xterm-256color", "COLUMNS": "120", **variables})
    out, err = (writer for _, writer in streams)
    process = subprocess.Popen(
        command, cwd=cwd, env=settings, stdin=subprocess.DEVNULL, stdout=out, stderr=err
    )
    for _, writer in streams:
        os.close(writer)
    written = {reader: b"" for reader, _ in streams}
    open_ones = set(written)
    while open_ones:
        for reader in select.select(list(open_ones), [], [])[0]:
            try:
                block = os.read(reader, 65536)
            except OSError:  # Linux's way to say that the other side is closed
                block = b""
            written[reader] += block
            if not block:
                open_ones.discard(reader)
                os.close(reader)
    process.wait()
    encoding = variables.get("PYTHONIOENCODING", "utf-8")
    first, second = (written[reader].decode(encoding) for reader, _ in streams)
    return first, second
