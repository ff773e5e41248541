"""Free memory, and the memory of this process."""

from __future__ import annotations

import os
import sys


def available_memory() -> int:
    """Bytes that can be had without swapping, within the limit of a container; about half of all where unknown."""
    limits = [_from_meminfo(), _from_cgroup(), _from_limit()]
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


def _from_limit() -> int | None:
    """Return the memory left under ``ulimit -v``."""
    if sys.platform == "win32":
        return None
    import resource

    limit, _ = resource.getrlimit(resource.RLIMIT_AS)
    if limit == resource.RLIM_INFINITY:
        return None
    try:
        with open("/proc/self/statm", encoding="ascii") as pages:
            used = int(pages.read().split()[0]) * resource.getpagesize()
    except OSError:
        used = 0
    return max(0, limit - used)


def peak_memory() -> int:
    """The most bytes of memory that this process has had at once."""
    try:
        with open("/proc/self/status", encoding="ascii") as lines:
            return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("VmHWM:"))
    except (OSError, StopIteration):
        import resource

        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        return peak * (1 if sys.platform == "darwin" else 1024)


def return_released() -> None:
    """Return the memory that this process has released, and that its allocator keeps, to the system; only glibc's can."""
    import ctypes

    trim = getattr(ctypes.CDLL(None), "malloc_trim", None) if sys.platform == "linux" else None
    if trim is not None:
        trim(0)
