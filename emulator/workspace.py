"""What a core works with: memories, scratch, the Tensor engine's tiles, and the words that were bound to them.

A released core leaves it to the next one of the same chip, which finds its memories fresh and the words of its program
bound already: programs that are run again, and kernels that differ in a few words, are what searches are made of.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Hashable
from typing import TYPE_CHECKING, Any, TypeVar
from weakref import ReferenceType

import numpy as np
import numpy.typing as npt

from emulator.access import Resolver
from emulator.arch import Arch
from emulator.engines.pe_state import PeState
from emulator.memory import ChipMemory
from emulator.scratch import Arena
from formats.engines import ENGINES
from formats.neuron_core import PARTITIONS

if TYPE_CHECKING:
    from formats.neff import Neff

__all__ = ["Workspace", "give_back", "take_workspace"]

_WAITING = 2  # workspaces that wait for a core: those of one device; what is more than that goes back in pieces
_REGIONS = 1 << 15  # that a workspace knows when it is kept: words that lead to more of them take room, too
_SEEN = 8  # files that a workspace remembers to have run
_CONDITIONS = 4  # under which words are kept bound, in one workspace
Kept = TypeVar("Kept")


class Workspace:
    """The arrays of one core, and what is bound to them; `accumulators` are those of each engine."""

    def __init__(self, arch: Arch, index: int) -> None:
        self.arch, self.index = arch, index
        self.memory = ChipMemory(
            index, arch.partitions.whole, arch.sbuf_bytes.whole, arch.psum_bytes.whole, arch.psum_bank.whole
        )
        self.resolver = Resolver(self.memory, arch)
        self.arena = Arena()
        self.pe = PeState()
        # One per partition.
        self.accumulators: dict[str, npt.NDArray[np.float32]] = {
            name: np.zeros(PARTITIONS, np.float32) for name in ENGINES
        }
        self._words: dict[Hashable, dict[str, Any]] = {}
        # Files that ran here once, and what is known of those that ran again (emulator.repeats).
        self.seen: deque[ReferenceType[Neff]] = deque(maxlen=_SEEN)
        self.ways: list[Any] = []

    def words_under(self, condition: Hashable) -> dict[str, Any]:
        """Return what is bound of engines' words under a condition: all else that a bound word depends on."""
        kept = self._words.get(condition)
        if kept is None:
            if len(self._words) >= _CONDITIONS:
                del self._words[next(iter(self._words))]
            kept = self._words[condition] = {}
        return kept

    def renew(self) -> None:
        """Be as if nothing had run here, but for the words that are bound, and what `memory.freshen` still fills."""
        self.memory.renew()
        self.pe.renew()
        for each in self.accumulators.values():
            each.fill(0.0)


_waiting: list[Workspace] = []
_lock = threading.Lock()


def take_workspace(arch: Arch, index: int) -> Workspace:
    """Return a workspace for a core of a chip, as fresh as a new one once its memory is told to `freshen`."""
    with _lock:
        found = next((each for each in reversed(_waiting) if each.arch is arch and each.index == index), None)
        if found is not None:
            _waiting.remove(found)
    if found is None:
        return Workspace(arch, index)
    found.renew()
    return found


def take_waiting(belongs: Callable[[list[Workspace]], Kept | None], cores: int) -> tuple[list[Workspace], Kept] | None:
    """Return the latest workspaces of all cores, fresh as `take_workspace` gives them, and what belongs to them.

    None, and nothing is taken, where nothing does.
    """
    with _lock:
        found = [next((each for each in reversed(_waiting) if each.index == index), None) for index in range(cores)]
        taken = [each for each in found if each is not None]
        wanted = belongs(taken) if cores and len(taken) == cores else None
        if wanted is None:
            return None
        for each in taken:
            _waiting.remove(each)
    for each in taken:
        each.renew()
    return taken, wanted


def give_back(workspace: Workspace) -> None:
    """Take over a workspace; nobody may look at its arrays, or at views of them, after that."""
    surplus: Workspace | None = workspace
    if workspace.memory.known_regions <= _REGIONS:
        with _lock:
            _waiting.append(workspace)
            surplus = _waiting.pop(0) if len(_waiting) > _WAITING else None
    if surplus is not None:
        surplus.memory.release()
