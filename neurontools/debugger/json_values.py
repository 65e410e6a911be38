"""The results of debugger commands as data that JSON can carry."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import fields, is_dataclass
from enum import Enum
from math import isfinite
from typing import Any

import numpy as np

from emulator.checks.finding import Finding
from emulator.diagnosis.graph import Hang
from emulator.faults import Fault
from formats.neff import SourceLocation
from neurontools.command.results import plain as as_json
from neurontools.debugger.conditions import Condition
from neurontools.debugger.results import TensorValue, printable
from neurontools.running.rows import fault_row, hang_row, source_row

__all__ = ["plain"]


def plain(value: object) -> Any:
    """Return a result as data that JSON can carry; arrays with their type and shape, infinities and NaN as text."""
    if value is None or isinstance(value, bool | int | str):
        return value.name if isinstance(value, Enum) else value
    if isinstance(value, float):
        return value if isfinite(value) else str(value)
    if isinstance(value, Fault):
        return as_json(fault_row(value))
    if isinstance(value, Hang):
        return as_json(hang_row(value))
    if isinstance(value, SourceLocation):
        return as_json(source_row(value))
    if isinstance(value, Finding):
        from neurontools.check.rows import finding_row  # deferred: start-up

        return plain(finding_row(value))
    if isinstance(value, Condition):
        return value.text
    if isinstance(value, TensorValue):
        return {**_fields(value._asdict()), "statistics": plain(value.statistics)}
    if isinstance(value, np.ndarray | np.generic):
        return {"dtype": value.dtype.name, "shape": list(value.shape), "values": plain(printable(value).tolist())}
    if hasattr(value, "_asdict"):
        return _fields(value._asdict())
    if is_dataclass(value):
        return {field.name: plain(getattr(value, field.name)) for field in fields(value)}
    if isinstance(value, Mapping):
        return _fields(value)
    assert isinstance(value, Iterable)
    return [plain(item) for item in (sorted(value) if isinstance(value, frozenset) else value)]


def _fields(items: Mapping[str, object]) -> dict[str, Any]:
    return {str(key): plain(item) for key, item in items.items()}
