"""Configuration files of neuron-monitor: groups of metrics, programs, periods. Source: runtime.md 13.3."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from formats.errors import FormatError
from formats.named_tuple import NamedTuple
from formats.nrt.monitor import RUNTIME_GROUPS, SYSTEM_GROUPS
from neurontools.command.files import read_text

__all__ = ["DEFAULT", "MonitorConfig", "RuntimeConfig", "read_config"]

_PERIOD = re.compile(r"(\d{1,6}(?:\.\d{1,6})?)(ms|s|m|h)", re.ASCII)
_UNITS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0}
_SECONDS = 5.0


class RuntimeConfig(NamedTuple):
    """Groups of some programs: those whose tag a pattern matches; seconds of each group."""

    tag_filter: str
    groups: dict[str, float]


class MonitorConfig(NamedTuple):
    """A configuration; `period` is the least of all."""

    runtimes: tuple[RuntimeConfig, ...]
    system: dict[str, float]

    @property
    def period(self) -> float:
        """Return how often there is something to report."""
        return min(
            [*self.system.values(), *(s for one in self.runtimes for s in one.groups.values())], default=_SECONDS
        )


DEFAULT = MonitorConfig(
    (RuntimeConfig(".*", dict.fromkeys(RUNTIME_GROUPS, _SECONDS)),), dict.fromkeys(SYSTEM_GROUPS, _SECONDS)
)


def read_config(path: Path) -> MonitorConfig:
    """Return the configuration in a file; FormatError for groups, periods and patterns that are none."""
    where = str(path)
    try:
        found = json.loads(read_text(path))
    except (ValueError, RecursionError) as error:
        if isinstance(error, FormatError):
            raise
        raise FormatError(f"not JSON: {error}", path=where) from None
    root = _object(found, where, "configuration", ("period", "neuron_runtimes", "system_metrics"))
    period = _period(root, where, _SECONDS)
    runtimes = []
    for one in _list(root.get("neuron_runtimes", []), where, "neuron_runtimes"):
        entry = _object(one, where, "neuron_runtimes", ("tag_filter", "period", "metrics"))
        pattern = entry.get("tag_filter", ".*")
        try:
            re.compile(pattern)
        except (re.error, TypeError, RecursionError):
            raise FormatError("not a pattern", path=where, field="tag_filter", got=repr(pattern)[:60]) from None
        groups = _groups(entry.get("metrics", []), where, _period(entry, where, period), tuple(RUNTIME_GROUPS))
        runtimes.append(RuntimeConfig(pattern, groups))
    return MonitorConfig(tuple(runtimes), _groups(root.get("system_metrics", []), where, period, tuple(SYSTEM_GROUPS)))


def _groups(value: Any, where: str, period: float, known: tuple[str, ...]) -> dict[str, float]:
    groups = {}
    for one in _list(value, where, "metrics"):
        entry = _object(one, where, "metrics", ("type", "period"))
        name = entry.get("type")
        if name not in known:
            raise FormatError("unknown group of metrics", path=where, field="type", got=repr(name)[:60],
                              expected=f"one of {', '.join(known)}")  # fmt: skip
        groups[str(name)] = _period(entry, where, period)
    return groups


def _list(value: Any, where: str, field: str) -> list[Any]:
    if not isinstance(value, list):
        raise FormatError("not an array", path=where, field=field)
    return value


def _object(value: Any, where: str, field: str, keys: tuple[str, ...]) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise FormatError("not an object", path=where, field=field)
    strange = next((key for key in value if key not in keys), None)
    if strange is not None:
        raise FormatError(
            "unknown key", path=where, field=field, expected=f"one of {', '.join(keys)}", got=repr(strange)[:60]
        )
    return value


def _period(entry: dict[str, Any], where: str, default: float) -> float:
    if "period" not in entry:
        return default
    match = _PERIOD.fullmatch(entry["period"]) if isinstance(entry["period"], str) else None
    seconds = float(match[1]) * _UNITS[match[2]] if match else 0.0
    if seconds <= 0:
        raise FormatError("not a period", path=where, field="period", expected="such as 1s or 500ms",
                          got=repr(entry["period"])[:60])  # fmt: skip
    return seconds
