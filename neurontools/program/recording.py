"""Recordings: everything that decides a run, so that it can be opened again as it was.

Runs are deterministic. A recording is a ZIP file with the NEFF, its inputs and the options of the run, and with what
came of it: times, the kind of end, a hash of the state. Opening one runs the program again, and says so where the end
is another one (a newer version of the emulator, say).
"""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Callable, Mapping
from math import prod
from pathlib import Path
from typing import TYPE_CHECKING, Any

from emulator.diagnosis.causes import Reason
from formats.errors import FormatError
from formats.limits import DEFAULT_LIMITS
from formats.named_tuple import NamedTuple
from formats.neff.fields import Fields, load
from neurontools.command.output import write_whole
from neurontools.program.arrays import array_type, write_members
from neurontools.program.configuration import RunConfiguration
from neurontools.program.zip_members import ZipMembers, damage_is_told

if TYPE_CHECKING:
    import numpy.typing as npt

    from emulator.device import Device
    from formats.neff import Neff

__all__ = ["End", "Recording", "RecordingObserver", "end_of", "open_recording"]

FORMAT = "neurontools.program.recording/1"
_DESCRIPTION, _NEFF, _INPUTS = "recording.json", "program.neff", "inputs.npz"
_EPOCH = (1980, 1, 1, 0, 0, 0)  # the same run gives the same bytes


# The part of a configuration that a recording keeps, and what reads each.
_OPTIONS: dict[str, Callable[[Fields, str], object]] = {
    "target": Fields.text, "seed": Fields.counted, "timing": Fields.truth, "act": Fields.text,
    "hang_timeout_ps": Fields.counted, "max_steps": Fields.counted, "limit_ps": Fields.counted,
}  # fmt: skip
_OUTCOMES = ("finished", "fault", "hang")


class End(NamedTuple):
    """What a run came to: "finished", "fault" or "hang", when, after how many completions, and a hash of the state."""

    outcome: str
    time_ps: int
    completions: int
    state: str


class Recording(NamedTuple):
    """One recorded run: `options` are fields of a `RunConfiguration`."""

    name: str
    neff: bytes
    inputs: dict[str, npt.NDArray[Any]]
    options: dict[str, Any]
    end: End
    folders: tuple[Path, ...]


class RecordingObserver:
    """Watches one run from outside and writes its recording when it is over; costs nothing while it runs."""

    def __init__(
        self,
        path: Path,
        name: str,
        neff: Neff | bytes,
        inputs: Mapping[str, npt.NDArray[Any]],
        configuration: RunConfiguration,
        folders: tuple[Path, ...] = (),
    ) -> None:
        self.path, self.name, self.folders = path, name, folders
        self.neff = neff if isinstance(neff, bytes) else neff.to_bytes()
        self.inputs = {key: value.copy() for key, value in inputs.items()}
        self.options = {key: getattr(configuration, key) for key in _OPTIONS}
        self._device: Device | None = None

    def attach(self, device: Device) -> None:
        """Keep the device to look at in the end."""
        self._device = device

    def finish(self) -> None:
        """Write the recording; FormatError where it cannot be written."""
        if self._device is None:
            return
        hang, options = self._device.hang, self.options
        if hang is not None and hang.reason in (Reason.HOST_TIME_LIMIT, Reason.INTERRUPTED):
            options = {**options, "max_steps": self._device.steps}  # what ended it does not come again
        recording = Recording(self.name, self.neff, self.inputs, options, end_of(self._device), self.folders)
        try:
            _write(self.path, recording)
        except OSError as error:
            # A script may run this, and would show its own traceback for an OSError; ours is no error of the script.
            reason = (error.strerror or str(error)).lower()
            raise FormatError(f"cannot be written ({reason})", path=str(self.path)) from None


def end_of(device: Device) -> End:
    """Return what a device has come to."""
    outcome = "fault" if device.fault is not None else "hang" if device.hang is not None else "finished"
    return End(outcome, device.now_ps, device.steps, device.state_hash())


def _write(path: Path, recording: Recording) -> None:
    import numpy as np

    arrays = io.BytesIO()
    dtypes = {name: array.dtype.name for name, array in recording.inputs.items()}
    # NumPy files cannot name the types of ml_dtypes: bytes go in, and the description says what they are.
    plain: dict[str, Any] = {name: np.ascontiguousarray(array).view(np.uint8).reshape(-1)
                             for name, array in recording.inputs.items() if array.size}  # fmt: skip
    write_members(arrays, plain)
    description = {
        "schema": FORMAT,
        "name": recording.name,
        "options": recording.options,
        "end": recording.end._asdict(),
        "folders": [str(folder) for folder in recording.folders],
        "inputs": {name: {"dtype": dtypes[name], "shape": list(array.shape)} for name, array in
                   recording.inputs.items()},
    }  # fmt: skip
    parts = {_DESCRIPTION: json.dumps(description, indent=1).encode(), _NEFF: recording.neff,
             _INPUTS: arrays.getvalue()}  # fmt: skip
    with write_whole(path) as beside, zipfile.ZipFile(beside, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        for name, data in parts.items():
            info = zipfile.ZipInfo(name, _EPOCH)
            # Packed zeros beyond the floor would be refused when the recording is opened.
            large = len(data) > DEFAULT_LIMITS.arrays_floor // 2
            info.compress_type = zipfile.ZIP_STORED if large else zipfile.ZIP_DEFLATED
            archive.writestr(info, data)


def open_recording(path: Path) -> Recording:
    """Return the recording in a file.

    Raises FormatError where it is damaged or something else.
    """
    where = str(path)
    with damage_is_told(where, "damaged recording"):
        size = path.stat().st_size
        with ZipMembers(path, where, size) as members:
            description = load(members.read(_DESCRIPTION, DEFAULT_LIMITS.parsed_from(size)), where)
            if description.raw.get("schema") != FORMAT:
                raise FormatError("not a recording", path=where, field="schema", expected=FORMAT)
            neff, packed = members.read(_NEFF), io.BytesIO(members.read(_INPUTS))
            with ZipMembers(packed, where, size, members.most) as arrays:
                inputs = {name: _input(arrays, name, what) for name, what in description.named_objects("inputs")}
        options, end = description.object("options"), description.object("end")
        return Recording(
            description.text("name"),
            neff,
            inputs,
            {key: read(options, key) for key, read in _OPTIONS.items() if options.raw.get(key) is not None},
            End(end.one_of("outcome", _OUTCOMES), end.counted("time_ps"), end.counted("completions"),
                end.text("state")),
            tuple(map(Path, description.texts("folders"))),
        )  # fmt: skip


def _input(arrays: ZipMembers, name: str, what: Fields) -> npt.NDArray[Any]:
    """Return one input: its bytes with the type and the shape that the description gives."""
    import numpy as np

    member = f"{name}.npy"
    raw = arrays.array(member) if member in arrays.names else np.empty(0, np.uint8)
    try:
        shape, dtype = what.shape("shape"), array_type(what.text("dtype"))
    except FormatError as error:
        raise error if error.path is not None else what.fail("dtype", "an element type") from None
    if raw.dtype != np.uint8 or raw.ndim != 1 or prod(shape) * dtype.itemsize != raw.size:
        raise what.fail("shape", f"{raw.size} bytes of {dtype}")
    return raw.view(dtype).reshape(shape)
