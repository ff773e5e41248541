"""How much memory is free."""

from __future__ import annotations

import os


def available_memory() -> int:
    """Bytes that can be had without swapping, within the limit of a container; about half of all where unknown."""
    limits = [_from_meminfo(), _from_cgroup()]
    known = [limit for limit in limits if limit is not None]
    return min(known) if known else os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 2


def _from_meminfo() -> int | None:
    try:
        with open("/proc/meminfo", encoding="ascii") as lines:
            return next(
                (int(line.split()[1]) * 1024 for line in lines if line.startswith("MemAvailable:")), None
            )
    except OSError:
        return None


def _from_cgroup() -> int | None:
    try:
        with open("/sys/fs/cgroup/memory.max", encoding="ascii") as limit, \
                open("/sys/fs/cgroup/memory.current", encoding="ascii") as used:  # fmt: skip
            return int(limit.read()) - int(used.read())
    except (OSError, ValueError):  # no cgroup, or no limit
        return None
