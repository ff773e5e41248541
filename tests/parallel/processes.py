"""Functions run on several gloo processes."""

from __future__ import annotations

import os
import socket
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import torch
import torch.distributed as dist
from torch.multiprocessing.spawn import spawn

PATIENCE = timedelta(seconds=120)


def on_processes(count: int, function: Callable[..., object], *arguments: Any) -> None:
    """Run a function in ``count`` new processes that know each other; raise what the first of them raised."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    spawn(_run, (count, port, function, arguments), nprocs=count)


def _run(
    rank: int, count: int, port: int, function: Callable[..., object], arguments: tuple[Any, ...]
) -> None:
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port), RANK=str(rank), WORLD_SIZE=str(count))
    torch.set_num_threads(1)
    dist.init_process_group("gloo", timeout=PATIENCE)
    try:
        function(*arguments)
    finally:
        dist.destroy_process_group()
