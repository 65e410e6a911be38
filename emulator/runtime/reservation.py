"""Cores of one instance shared by several processes: who has a core keeps others from it.

Emulated cores collide only where somebody wants them to: processes that name the same folder in
NEURONTOOLS_CORE_LOCKS stand for processes of one instance.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Sequence
from pathlib import Path

from emulator.runtime.errors import StatusError
from formats.nrt.status import NrtStatus

__all__ = ["LOCKS_VARIABLE", "Reservation"]

LOCKS_VARIABLE = "NEURONTOOLS_CORE_LOCKS"


class Reservation:
    """Physical and logical cores that this process has; an open file with a lock for each, so that they end with it."""

    def __init__(self, folder: str | None) -> None:
        self._folder = Path(folder) if folder else None
        self._files: dict[int, int] = {}

    def take(self, cores: Sequence[int]) -> None:
        """Reserve all of the cores; NRT_LOAD_NOT_ENOUGH_NC, and none is kept, where another process has one."""
        missing = [core for core in cores if not self._try(core)]
        if missing:
            self.release()
            free = len(cores) - len(missing)
            raise StatusError(
                NrtStatus.NRT_LOAD_NOT_ENOUGH_NC,
                f"NeuronCore(s) not available - Requested:nc{cores[0]}-nc{cores[-1]} Available:{free}",
            )

    def take_free(self, wanted: int, total: int) -> tuple[int, ...]:
        """Reserve and return the first free cores that lie together; NRT_LOAD_NOT_ENOUGH_NC where there are too few."""
        run: list[int] = []
        for core in range(total):
            if self._try(core):
                run.append(core)
                if len(run) == wanted:
                    return tuple(run)
            else:
                self.release()
                run = []
        free = len(run)
        self.release()
        raise StatusError(
            NrtStatus.NRT_LOAD_NOT_ENOUGH_NC, f"NeuronCore(s) not available - Requested:{wanted} Available:{free}"
        )

    def _try(self, core: int) -> bool:
        if self._folder is None:
            return True
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
            file = os.open(self._folder / f"nc{core}.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
        except OSError as error:
            raise StatusError(NrtStatus.NRT_FAILURE, f"{LOCKS_VARIABLE}: {error}") from None
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(file)
            return False
        self._files[core] = file
        return True

    def release(self) -> None:
        """Give all cores back."""
        for file in self._files.values():
            os.close(file)
        self._files.clear()
