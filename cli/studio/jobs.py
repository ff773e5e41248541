"""Long work that the page has started, in a process of its own: one at a time."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import sys
from collections.abc import AsyncIterator, Mapping
from typing import Any


class Job:
    """Runs one piece of work at a time: an export, a comparison in training, or a checkpoint."""

    def __init__(self) -> None:
        self._process: asyncio.subprocess.Process | None = None
        self._runs = ""
        self._cancelled = False

    async def events(self, work: str, request: Mapping[str, Any]) -> AsyncIterator[dict[str, Any]]:
        """Do some work and report every event.  The end of the iterator before the work's ends the work."""
        if self._runs:
            message = f"The studio is busy: {self._runs}.\n  Wait for it, or cancel it."
            yield {"event": "failed", "message": message}
            return
        self._runs = work
        try:
            async for event in self._events({"work": work, **request}):
                yield event
        finally:
            await self.cancel()
            self._runs = ""

    async def _events(self, request: Mapping[str, Any]) -> AsyncIterator[dict[str, Any]]:
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "cli.studio.work_process",
            stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.DEVNULL,
            limit=2**26, env=environment,
        )  # fmt: skip
        self._process, self._cancelled = process, False
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(json.dumps(request).encode())
        process.stdin.close()
        last = ""
        async for line in process.stdout:
            event = json.loads(line)
            last = event["event"]
            yield event
        if last not in ("done", "failed", "exists"):
            status = await process.wait()
            message = f"The process ended with status {status}; nothing was written."
            yield {"event": "cancelled"} if self._cancelled else {"event": "failed", "message": message}

    async def cancel(self) -> None:
        """End the running work, which then leaves nothing behind."""
        process = self._process
        if process is None or process.returncode is not None:
            return
        self._cancelled = True
        with contextlib.suppress(ProcessLookupError):
            process.terminate()
        try:
            await asyncio.wait_for(process.wait(), 10)
        except TimeoutError:
            process.kill()
            await process.wait()
