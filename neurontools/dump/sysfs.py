"""State of real devices as the Neuron driver shows it in sysfs; every file may be missing.

Source: AWS Neuron documentation, neuron-sysfs-user-guide.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path

from formats.named_tuple import NamedTuple

__all__ = ["DeviceCore", "device_cores", "read_tree"]

PLACE = "devices/virtual/neuron_device"
_DEVICE, _CORE = re.compile(r"neuron(\d{1,4})"), re.compile(r"neuron_core(\d{1,4})")
_LARGEST = 4096  # bytes of one attribute: sysfs gives a page
_MOST = 2000  # attributes of one core
_ACTIONS = {"reset"}  # reading or writing them does something


class DeviceCore(NamedTuple):
    """One physical core: number of its device, its number on the device, number among all cores, its folder."""

    device: int
    core: int
    number: int
    folder: Path


def device_cores(root: Path, variables: Mapping[str, str]) -> Iterator[DeviceCore]:
    """Yield the cores that a process sees: NEURON_RT_VISIBLE_CORES counts logical cores over all devices."""
    wanted = _visible(variables)
    number = 0
    for device, folder in _numbered(root / PLACE, _DEVICE):
        for core, place in _numbered(folder, _CORE):
            if wanted is None or number in wanted:
                yield DeviceCore(device, core, number, place)
            number += 1


def read_tree(folder: Path, skip: str = "") -> dict[str, str]:
    """Return the attributes below a folder by relative path; `skip` is the beginning of folder names left out."""
    found: dict[str, str] = {}
    base = str(folder)
    for place, folders, files in os.walk(folder):
        folders[:] = sorted(each for each in folders if not (skip and each.startswith(skip)))
        for name in sorted(files):
            if len(found) >= _MOST:
                return found
            if name in _ACTIONS:
                continue
            path = os.path.join(place, name)
            with suppress(OSError), open(path, "rb") as file:
                found[os.path.relpath(path, base)] = file.read(_LARGEST).decode("utf-8", "replace").strip()
    return found


def _numbered(folder: Path, pattern: re.Pattern[str]) -> list[tuple[int, Path]]:
    try:
        names = os.listdir(folder)
    except OSError:
        return []
    return sorted((int(found[1]), folder / name) for name in names if (found := pattern.fullmatch(name)))


def _visible(variables: Mapping[str, str]) -> set[int] | None:
    """Return the physical cores that the variables choose, None for all of them."""
    size = variables.get("NEURON_RT_VIRTUAL_CORE_SIZE") or variables.get("NEURON_LOGICAL_NC_CONFIG") or "1"
    lnc = int(size) if size in ("1", "2", "4", "8") else 1
    text = variables.get("NEURON_RT_VISIBLE_CORES", "")
    logical: set[int] = set()
    for part in text.replace(" ", "").split(","):
        found = re.fullmatch(r"(\d{1,5})(?:-(\d{1,5}))?", part)
        if found is not None:
            logical.update(range(int(found[1]), int(found[2] or found[1]) + 1))
    if not logical:
        return None
    return {core * lnc + each for core in logical for each in range(lnc)}
