"""Recordings: everything that decides a run, so that it can be opened again as it was.

Runs are deterministic. A recording is a ZIP file with the NEFF, its inputs and the options of the run, and with what
came of it: times, the kind of end, a hash of the state. Opening one runs the program again, and says so where the end
is another one (a newer version of the emulator, say).
"""

from __future__ import annotations

import io
import json
import zipfile
import zlib
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from formats.errors import FormatError
from neurontools.output import write_whole

if TYPE_CHECKING:
    from emulator.session import Session

__all__ = ["Recording", "RecordingObserver", "is_recording", "open_recording", "replay"]

FORMAT = "neurontools.recording/1"
_DESCRIPTION, _NEFF, _INPUTS = "recording.json", "program.neff", "inputs.npz"
_EPOCH = (1980, 1, 1, 0, 0, 0)  # the same run gives the same bytes


class Recording(NamedTuple):
    """One recorded run: `options` are those of `emulator.session.Session`, `end` is what the run came to."""

    name: str
    neff: bytes
    inputs: dict[str, Any]
    options: dict[str, Any]
    end: dict[str, Any]
    folders: tuple[str, ...]


class RecordingObserver:
    """Watches one run from outside and writes its recording when it is over; costs nothing while it runs."""

    def __init__(self, path: Path, name: str, neff: Any, inputs: dict[str, Any], options: dict[str, Any],
                 folders: tuple[str, ...] = ()) -> None:
        self.path = path
        data = neff if isinstance(neff, bytes) else neff.to_bytes()
        kept = {key: value.copy() for key, value in inputs.items()}
        self.recording = Recording(name, data, kept, options, {}, folders)
        self._device: Any = None

    def attach(self, device: Any) -> None:
        """Keep the device to look at in the end."""
        self._device = device

    def finish(self) -> None:
        """Write the recording."""
        self.recording.end.update(_end(self._device))
        _write(self.path, self.recording)


def _end(device: Any) -> dict[str, Any]:
    outcome = "fault" if device.fault is not None else "hang" if device.hang is not None else "finished"
    return {"outcome": outcome, "time_ps": device.now_ps, "completions": device.steps, "state": device.state_hash()}


def _write(path: Path, recording: Recording) -> None:
    import numpy as np

    arrays = io.BytesIO()
    dtypes = {name: array.dtype.name for name, array in recording.inputs.items()}
    # NumPy files cannot name the types of ml_dtypes: bytes go in, and the description says what they are.
    plain = {name: np.ascontiguousarray(array).view(np.uint8).reshape(-1) for name, array in recording.inputs.items()
             if array.size}  # fmt: skip
    np.savez(arrays, **plain)
    description = {
        "schema": FORMAT,
        "name": recording.name,
        "options": recording.options,
        "end": recording.end,
        "folders": list(recording.folders),
        "inputs": {name: {"dtype": dtypes[name], "shape": list(array.shape)} for name, array in
                   recording.inputs.items()},
    }  # fmt: skip
    parts = {_DESCRIPTION: json.dumps(description, indent=1).encode(), _NEFF: recording.neff,
             _INPUTS: arrays.getvalue()}  # fmt: skip
    with write_whole(path) as beside, zipfile.ZipFile(beside, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        for name, data in parts.items():
            info = zipfile.ZipInfo(name, _EPOCH)
            info.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(info, data)


def is_recording(path: Path) -> bool:
    """Tell whether a file is a recording, by its first bytes."""
    try:
        with path.open("rb") as stream:
            return stream.read(4) == b"PK\x03\x04"
    except OSError:
        return False


def open_recording(path: Path) -> Recording:
    """Return the recording in a file.

    Raises FormatError where it is damaged or something else.
    """
    from emulator.dtypes import numpy_dtype
    from formats.dtypes import Dtype

    try:
        with zipfile.ZipFile(path) as archive:
            description = json.loads(archive.read(_DESCRIPTION))
            if not isinstance(description, dict) or description.get("schema") != FORMAT:
                raise FormatError("not a recording", path=str(path), field="schema", expected=FORMAT)
            import numpy as np

            neff = archive.read(_NEFF)
            arrays = np.load(io.BytesIO(archive.read(_INPUTS)), allow_pickle=False)
            inputs = {}
            for name, what in description["inputs"].items():
                raw = arrays[name] if name in arrays else np.empty(0, np.uint8)
                try:
                    dtype = numpy_dtype(Dtype.from_numpy_name(what["dtype"]))
                except FormatError:
                    dtype = np.dtype(what["dtype"])
                inputs[name] = raw.view(dtype).reshape(what["shape"])
            options, end = dict(description["options"]), dict(description["end"])
            return Recording(str(description["name"]), neff, inputs, options, end, tuple(description["folders"]))
    except FormatError:
        raise
    except (zipfile.BadZipFile, zlib.error, KeyError, ValueError, TypeError, AttributeError, EOFError,
            NotImplementedError, RuntimeError, OSError) as error:  # fmt: skip
        raise FormatError(f"damaged recording: {error}", path=str(path)) from None


def replay(recording: Recording, journal_bytes: int) -> Session:
    """Return a session that stands at the end of the recorded run; `notes` says where it ended otherwise."""
    from emulator.session import Session
    from emulator.session.spans import record

    options = {key: recording.options.get(key) for key in ("target", "seed", "hang_timeout_ps")}
    session = Session(
        recording.neff, recording.inputs, **options, timing=bool(recording.options.get("timing", True)),
        act=str(recording.options.get("act", "exact")), journal_bytes=journal_bytes,
    )  # fmt: skip
    session.folders += [Path(folder) for folder in recording.folders]
    record(session)
    session.goto("end")
    found = _end(session.device)
    if found != recording.end:
        told = ", ".join(f"{key} {recording.end.get(key)} then, {value} now" for key, value in found.items()
                         if recording.end.get(key) != value)  # fmt: skip
        session.notes.append(f"the run does not end as it was recorded: {told}")
    return session
