"""The exports that the page has started: one at a time."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import sys
from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from typing import Any

_OPTIONS = ("target", "precision", "layout", "weights")
"""The options that the page may set; none of them is a path that it writes to."""

_WEIGHTS = ("random", "none")
"""The weights that the page may ask for."""


class ExportJob:
    """Runs one export at a time in a process of its own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._process: asyncio.subprocess.Process | None = None
        self._runs = False

    async def events(self, text: str, options: Mapping[str, Any]) -> AsyncIterator[dict[str, Any]]:
        """Export a text and report every event.  The end of the iterator before the export's ends the export."""
        if self._runs:
            yield {"event": "failed", "message": "An export is running.\n  Wait for it, or cancel it."}
            return
        chosen = {name: str(options[name]) for name in _OPTIONS if options.get(name)}
        if chosen.get("weights", _WEIGHTS[0]) not in _WEIGHTS:
            yield {"event": "failed", "message": f"weights must be {' or '.join(_WEIGHTS)}."}
            return
        self._runs = True
        try:
            async for event in self._events(text, chosen):
                yield event
        finally:
            await self.cancel()
            self._runs = False

    async def _events(self, text: str, options: Mapping[str, str]) -> AsyncIterator[dict[str, Any]]:
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "cli.studio.export_process",
            stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.DEVNULL,
            limit=2**26, env=environment,
        )  # fmt: skip
        self._process = process
        assert process.stdin is not None
        assert process.stdout is not None
        request = {"text": text, "folder": str(self.folder), "options": options}
        process.stdin.write(json.dumps(request).encode())
        process.stdin.close()
        last = ""
        async for line in process.stdout:
            event = json.loads(line)
            last = event["event"]
            yield event
        if last not in ("done", "failed"):
            status = await process.wait()
            yield {
                "event": "failed",
                "message": f"The export ended with status {status}; nothing was written.",
            }

    async def cancel(self) -> None:
        """End the running export, which then leaves nothing behind."""
        process = self._process
        if process is None or process.returncode is not None:
            return
        with contextlib.suppress(ProcessLookupError):
            process.terminate()
        try:
            await asyncio.wait_for(process.wait(), 10)
        except TimeoutError:
            process.kill()
            await process.wait()
