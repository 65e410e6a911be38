"""What a process of a trial may take."""

from __future__ import annotations

__all__ = ["limit_memory"]


def limit_memory(megabytes: int) -> None:
    """Let this process have so much more address space than it has now; no limit where the system has none."""
    try:
        import resource  # deferred: optional resource
    except ImportError:
        return
    try:
        with open("/proc/self/statm", encoding="ascii") as file:
            have = int(file.read().split()[0]) * resource.getpagesize()
    except (OSError, ValueError):
        have = 0
    wanted = have + (megabytes << 20)
    _, hard = resource.getrlimit(resource.RLIMIT_AS)
    if hard == resource.RLIM_INFINITY or wanted < hard:
        resource.setrlimit(resource.RLIMIT_AS, (wanted, hard))
