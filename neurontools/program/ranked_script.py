"""A script on several ranks: it runs once for each, and where all have come to a launch, the ranks run together.

Every rank's script has its own `__main__`, its own environment (RANK, WORLD_SIZE, LOCAL_RANK, as torchrun sets them)
and its own arguments.  One of them runs at a time, in the order of ranks, from launch to launch: the same script gives
the same run.
"""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from emulator.runtime.ranks import RankedResult
from formats.named_tuple import NamedTuple
from neurontools.program.configuration import RunConfiguration
from neurontools.program.execution import Execution
from neurontools.program.launches import Launches, current, run_launches, stand

if TYPE_CHECKING:
    from formats.neff import Neff

__all__ = ["Asked", "RankedScript", "Together"]


class Asked(NamedTuple):
    """A launch that one rank's script has come to."""

    name: str
    neff: bytes
    inputs: dict[str, Any]


Together = Callable[[list["Asked | None"]], tuple[RankedResult, list[Execution]]]


class _World(NamedTuple):
    """What a script takes to be its own: all that the scripts of a process would share."""

    environment: dict[str, str]
    arguments: list[str]
    path: list[str]
    main: Any
    output: Any
    launches: Launches | None
    folder: str

    @classmethod
    def now(cls) -> _World:
        """Return what holds at this moment."""
        main = sys.modules.get("__main__")
        return cls(dict(os.environ), list(sys.argv), list(sys.path), main, sys.stdout, current(), os.getcwd())

    def enter(self) -> None:
        """Let it hold from here on."""
        os.chdir(self.folder)
        os.environ.clear()
        os.environ.update(self.environment)
        sys.argv, sys.path[:], sys.stdout = list(self.arguments), self.path, self.output
        if self.main is not None:
            sys.modules["__main__"] = self.main
        stand(self.launches)


class _Left(BaseException):
    """Ends the script of a rank when another one cannot go on."""


class RankedScript:
    """One script, run for every rank; `together` runs the launches that all of them have come to.

    `look` sees the first launch of all before any other rank's script begins: it may raise, and returns how many ranks
    a node has, `per_node` until then. `failed` has the exit statuses of the ranks whose scripts have ended with one,
    also where a launch of the others raises.
    """

    def __init__(self, file: Path, configuration: RunConfiguration, ranks: int, together: Together, per_node: int,
                 look: Callable[[Asked], int]) -> None:  # fmt: skip
        self._together, self._per_node, self._look, self._looked = together, per_node, look, False
        self.failed: dict[int, int] = {}
        self._turns = [_Turn(file, configuration, rank, ranks) for rank in range(ranks)]

    def run(self, *, aside: bool) -> list[int]:
        """Run all scripts to their ends; return their exit statuses. Errors of this toolkit pass."""
        try:
            while any(turn.alive for turn in self._turns):
                for turn in self._turns:
                    if turn.alive:
                        turn.go_on(aside, self._per_node)
                        if turn.error is not None:
                            raise turn.error
                        if turn.status and not turn.alive:
                            self.failed[turn.rank] = turn.status
                        if turn.asked is not None and not self._looked:
                            self._looked = True
                            self._per_node = self._look(turn.asked)
                asked = [turn.asked for turn in self._turns]
                if not any(asked):
                    continue
                _, made = self._together(asked)
                for turn, each in zip(self._turns, made, strict=True):
                    if turn.asked is not None:
                        turn.made, turn.asked = each, None
        finally:
            for turn in self._turns:
                turn.leave()
        return [turn.status for turn in self._turns]


class _Turn(Launches):
    """The script of one rank, which runs while its turn lasts."""

    def __init__(self, file: Path, configuration: RunConfiguration, rank: int, ranks: int) -> None:
        super().__init__(configuration)
        self.file, self.rank = file, rank
        self.asked: Asked | None = None
        self.made: Execution | None = None
        self.status = 0
        self.error: BaseException | None = None
        self.alive = True
        self._world: _World | None = None
        self._own = {"RANK": str(rank), "WORLD_SIZE": str(ranks)}
        self._mine, self._back = threading.Semaphore(0), threading.Semaphore(0)
        self._thread: threading.Thread | None = None
        self._leaving = False

    def go_on(self, aside: bool, per_node: int) -> None:
        """Let the script run to its next launch, or to its end; where it begins, it is told its place on its node."""
        before = _World.now()
        if self._world is None:
            own = {**self._own, "LOCAL_RANK": str(self.rank % per_node)}
            before._replace(environment={**before.environment, **own}).enter()
        else:
            self._world.enter()
        if self._thread is None:
            # a daemon: a script that never comes back must not keep the process
            self._thread = threading.Thread(target=self._all, args=(aside,), daemon=True, name=f"rank {self.rank}")
            self._thread.start()
        else:
            self._mine.release()
        self._back.acquire()
        self._world = _World.now()
        before.enter()

    def _all(self, aside: bool) -> None:
        try:
            self.status = run_launches(self.file, self, aside=aside)
        except _Left:
            self.status = 1
        except BaseException as error:  # noqa: BLE001  carried to the thread that waits for it, whatever it is
            self.error = error
        finally:
            self.alive = False
            self._back.release()

    def run(self, name: str, neff: Neff | bytes, inputs: Mapping[str, Any]) -> Execution:
        """Give the launch to all ranks together, and wait for what comes of it."""
        whole = neff if isinstance(neff, bytes) else neff.to_bytes()
        self.asked = Asked(name, whole, {key: array.copy() for key, array in inputs.items()})
        self._back.release()
        self._mine.acquire()
        if self._leaving or self.made is None:
            raise _Left
        made, self.made = self.made, None
        return made

    def leave(self) -> None:
        """End the script where it waits for a launch that will not come back."""
        if self.alive and self._thread is not None:
            self._leaving = True
            self._mine.release()
            self._thread.join(timeout=5.0)
