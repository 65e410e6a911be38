"""A module evaluated by several ranks together: one thread each, which wait for one another at every collective."""

from __future__ import annotations

from collections.abc import Sequence
from threading import Condition, Thread
from typing import Any

from formats.errors import FormatError, NeuronError
from formats.hlo import Instruction, Module
from neurontools.hlo_interpreter.registry import Value
from neurontools.hlo_interpreter.run import Interpreter

__all__ = ["evaluate_ranks"]

_MOST_RANKS = 256


def evaluate_ranks(module: Module, arguments: Sequence[Sequence[Any]]) -> list[Value]:
    """Return the value of a module's entry on every rank; `arguments` has those of each.

    Raises what the first rank that fails raises, and FormatError where ranks wait at collectives that never meet.
    """
    if not 0 < len(arguments) <= _MOST_RANKS:
        raise FormatError("another number of ranks than can be evaluated", expected=f"1 to {_MOST_RANKS}",
                          got=len(arguments))  # fmt: skip
    meeting = _Meeting(len(arguments))
    found: list[Value] = [None] * len(arguments)

    def work(rank: int) -> None:
        try:
            found[rank] = _Rank(meeting, rank).run(module, arguments[rank])
            meeting.left(rank, None)
        except _AbandonedError:
            pass  # another rank says why
        except (NeuronError, ArithmeticError, LookupError, MemoryError, TypeError, ValueError) as error:
            meeting.left(rank, error)

    threads = [Thread(target=work, args=(rank,), daemon=True) for rank in range(len(arguments))]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    if meeting.error is not None:
        raise meeting.error
    return found


class _AbandonedError(Exception):
    """Ends a rank that waits for one that will not come."""


class _Meeting:
    """Where ranks wait for one another: each brings a collective and what it gives."""

    def __init__(self, ranks: int) -> None:
        self.ranks = ranks
        self.error: BaseException | None = None
        self._changed = Condition()
        self._brought: dict[int, tuple[Instruction, Value]] = {}
        self._turn = 0
        self._last: list[Value] = []
        self._gone: set[int] = set()

    def meet(self, rank: int, instruction: Instruction, given: Value) -> list[Value]:
        """Return what all ranks give, in their order, once the last one has come."""
        with self._changed:
            turn = self._turn
            self._brought[rank] = instruction, given
            self._settle()
            while self._turn == turn and self.error is None:
                self._changed.wait()
            if self.error is not None:
                raise _AbandonedError
            return self._last

    def left(self, rank: int, error: BaseException | None) -> None:
        """Note that a rank has ended, or why it cannot go on."""
        with self._changed:
            self._gone.add(rank)
            self.error = self.error or error
            self._settle()
            self._changed.notify_all()

    def _settle(self) -> None:
        """Let all go on who have met; where the rest has ended, or is elsewhere, nobody can."""
        if self.error is not None or len(self._brought) + len(self._gone) < self.ranks or not self._brought:
            return
        names = {one.name for one, _ in self._brought.values()}
        if self._gone or len(names) > 1:
            where = ", ".join(f"rank {rank} at %{one.name}" for rank, (one, _) in sorted(self._brought.items())[:8])
            ended = f"; {len(self._gone)} ended" if self._gone else ""
            self.error = FormatError(f"ranks wait for each other: {where}{ended}")
        else:
            self._last = [self._brought[rank][1] for rank in range(self.ranks)]
            self._brought = {}
            self._turn += 1
        self._changed.notify_all()


class _Rank(Interpreter):
    """Evaluates a module as one of several ranks."""

    def __init__(self, meeting: _Meeting, rank: int) -> None:
        super().__init__()
        self._meeting, self.rank, self.ranks = meeting, rank, meeting.ranks

    def met(self, instruction: Instruction, given: Value) -> list[Value]:
        """Return what each rank gives to a collective."""
        return self._meeting.meet(self.rank, instruction, given)
