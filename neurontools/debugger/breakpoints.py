"""Breakpoints, watchpoints and catchpoints: setting them, their conditions, ignore counts and commands."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import overload

from formats.errors import NotFoundError
from formats.neuron_core import SYNC_COUNT
from neurontools.debugger.breakpoint import CATCHES, WATCHES, Breakpoint
from neurontools.debugger.checking import Checking
from neurontools.debugger.conditions import Condition
from neurontools.debugger.errors import UsageError
from neurontools.debugger.execution import Execution, Owner
from neurontools.debugger.expressions import situation_at
from neurontools.debugger.names import parse_core
from neurontools.debugger.regions import regions_of_text
from neurontools.debugger.tensors import NAMED

__all__ = ["Breakpoints"]

_COUNTER = re.compile(r"([SsEe])\[(\d{1,9})\]")
_VALUE = re.compile(r"([SsEe]\[\d{1,9}\])\s*(>=|<=|==|!=|>|<)\s*(-?\w+)")


class Breakpoints(Sequence[Breakpoint]):
    """The breakpoints of a session in the order they were set; their numbers are never used again."""

    def __init__(self, execution: Execution, checking: Checking | None = None) -> None:
        self._execution, self._checking = execution, checking
        self._table: dict[int, Breakpoint] = {}
        self.last = 0
        self._met: dict[int, Breakpoint] = {}
        # What is done instead of stopping, by number: an editor's log points, over which a step goes on as it was.
        self.passing: dict[int, Callable[[Owner], object]] = {}
        self.before: tuple[Breakpoint, ...] = ()
        self.after: tuple[Breakpoint, ...] = ()

    def __len__(self) -> int:
        return len(self._table)

    @overload
    def __getitem__(self, index: int) -> Breakpoint: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[Breakpoint, ...]: ...
    def __getitem__(self, index: int | slice) -> Breakpoint | tuple[Breakpoint, ...]:
        return self.all[index]

    @property
    def all(self) -> tuple[Breakpoint, ...]:
        """Return the breakpoints in the order they were set."""
        return tuple(self._table.values())

    # --- setting -----------------------------------------------------------------------------------------------------

    def break_at(self, where: str, temporary: bool = False, condition: str | None = None) -> Breakpoint:
        """Stop `continue` before a place, or after a counter comes to satisfy a comparison.

        A place is "PE:12", "kernel.py:88", a pc of the focus engine, "%dot.5" (the first word that each engine has of
        an operation of the graph), each word of an engine or opcode, or each transfer of a queue; a comparison is
        "S[5] >= 3" or "E[2] == 1". "nc1 " in front means one core only. With a condition
        (see `neurontools.debugger.conditions`) it stops only where that holds.
        """
        text = where.strip()
        core, rest = parse_core(text)
        found = _VALUE.fullmatch(rest)
        if found is None:
            goal = self._execution.program.resolve(text, self._execution.focus[1])
            return self._set(Breakpoint(0, text, *goal, temporary=temporary), condition)
        counter = self._counter(found[1], core)
        try:
            value = int(found[3], 0)
        except ValueError:
            raise UsageError(f"{found[3]!r} is not a number") from None
        shown = f"{found[1].upper()} {found[2]} {value} on nc{counter[0]}"
        made = Breakpoint(0, text, "value", shown, temporary=temporary, counter=counter, compare=(found[2], value))
        return self._set(made, condition)

    def tbreak(self, where: str, condition: str | None = None) -> Breakpoint:
        """Set a breakpoint that goes away when it is hit."""
        return self.break_at(where, temporary=True, condition=condition)

    def watch(self, where: str, kind: str = "write", condition: str | None = None) -> Breakpoint:
        """Stop after a write, read or either ("write", "read", "access") of bytes or a tensor, as in `last_write`.

        "S[8]" and "E[3]" are a semaphore and an event, any change of which counts; "nc1 " in front chooses the core.
        """
        if kind not in WATCHES:
            raise UsageError(f"{kind!r} is none of {', '.join(WATCHES)}")
        text = where.strip()
        core, rest = parse_core(text)
        if _COUNTER.fullmatch(rest) is None:
            regions, shown = regions_of_text(self._execution, text, self._execution.engine(None, core)[0])
            return self._set(Breakpoint(0, text, kind, f"{kind} of {shown}", regions=regions), condition)
        if kind != "write":
            raise UsageError("a semaphore or event is watched for changes, not for reads")
        counter = self._counter(rest, core)
        shown = f"change of {rest.upper()} on nc{counter[0]}"
        return self._set(Breakpoint(0, text, kind, shown, counter=counter), condition)

    def _counter(self, text: str, core: int | None) -> tuple[int, str, int]:
        letter, number = text[0].upper(), int(text[2:-1])
        if number >= SYNC_COUNT:
            raise NotFoundError(f"no {text}; there are 0 to {SYNC_COUNT - 1}")
        return self._execution.engine(None, core)[0], "semaphore" if letter == "S" else "event", number

    def catch(self, what: str, condition: str | None = None, temporary: bool = False) -> Breakpoint:
        """Stop after an event.

        "dma" is the completion of a transfer, "dma QUEUE" of one queue; "nan" and "inf" a word or transfer that writes
        one, "nan TENSOR[slice]" into a tensor that then holds one, "nan ADDRESS, BYTES" into bytes; "fault" and "hang"
        the end of an execution; "finding" something that the checks find (see `enable_checks`), "finding racecheck"
        one of them.
        """
        text = " ".join(what.split())
        kind, _, rest = text.partition(" ")
        if kind not in CATCHES:
            raise UsageError(f"catch what? {', '.join(CATCHES)}; not {kind or 'nothing'!r}")
        made = Breakpoint(0, text, kind, text, temporary=temporary)
        if kind == "dma":
            queues = [queue for queue in self._execution.device.queues if rest in ("", queue.name)]
            if not queues:
                names = ", ".join(dict.fromkeys(queue.name for queue in self._execution.device.queues)) or "none"
                raise NotFoundError(f"no queue {rest!r}; there is {names}")
            made.owners = frozenset((queue.core, queue.name) for queue in queues)
            made.where = f"completion of {rest or 'any transfer'}"
        elif kind in ("nan", "inf"):
            name = "NaN" if kind == "nan" else "Inf"
            made.where = f"{name} written"
            if rest:
                core = self._execution.engine(None, parse_core(rest)[0])[0]
                made.regions, shown = regions_of_text(self._execution, rest, core)
                made.where = f"{name} written into {shown}"
                made.tool = self._tensor_text(rest, core)
        elif kind == "finding":
            made.tool = self._finding_tool(rest)
            made.where = f"finding of {made.tool or 'any check'}"
        elif rest:
            raise UsageError(f"catch {kind} takes no argument")
        return self._set(made, condition)

    def _tensor_text(self, text: str, core: int) -> str:
        """Return the tensor or slice that a place means, "" for an address."""
        rest = parse_core(text)[1]
        found = NAMED.fullmatch(rest)
        return rest if found is not None and found[1] in self._execution.tensors.names(core) else ""

    def _finding_tool(self, name: str) -> str:
        from emulator.checks import tools_of  # deferred: start-up

        wanted = tools_of([name]) if name else ()
        running = () if self._checking is None else self._checking.tools
        if not running or not set(wanted) <= set(running):
            raise UsageError(f"no check{f' {name}' if name else ''} is running; `checks on` starts them")
        return wanted[0] if len(wanted) == 1 else ""

    def _set(self, made: Breakpoint, condition: str | None) -> Breakpoint:
        # First, since it may be refused: a number is not used up by a breakpoint that was never set.
        made.condition = self._condition(condition, made)
        self.last += 1
        made.number = self.last
        self._table[made.number] = made
        self._refresh()
        return made

    def _condition(self, text: str | None, of: Breakpoint) -> Condition | None:
        """Return a condition that has an answer now, or will have one: names are checked at once."""
        if text is None or not text.strip():
            return None
        made = Condition(text)
        here = self._execution
        # Any place of it does: this only finds names that do not exist.
        place = next(iter(sorted(of.places)), (*here.focus, 0))
        with suppress(ArithmeticError):  # such as a division by what is zero now
            made.holds(situation_at(here, (*place, "instruction"), here.time_ps, here.events))
        return made

    def adopt(self, made: Breakpoint) -> None:
        """Take a breakpoint of another rank, which does not stop here, under its number."""
        self._table[made.number] = replace(made, here=False)
        self.last = made.number
        self._refresh()

    # --- changing ----------------------------------------------------------------------------------------------------

    def condition(self, number: int, text: str | None = None) -> Breakpoint:
        """Let a breakpoint stop only where a condition holds; always, without one."""
        found = self.get(number)
        found.condition, found.error = self._condition(text, found), ""
        return found

    def ignore(self, number: int, count: int) -> Breakpoint:
        """Let a breakpoint be hit `count` times, in either direction, before it stops."""
        if count < 0:
            raise UsageError(f"a count is not negative: {count}")
        found = self.get(number)
        found.ignore = count
        return found

    def set_commands(self, number: int, lines: Iterable[str]) -> Breakpoint:
        """Note the commands that whoever drives the session runs where a breakpoint stops."""
        found = self.get(number)
        found.commands = tuple(lines)
        return found

    def commands_of(self, numbers: Iterable[int]) -> tuple[str, ...]:
        """Return the commands of the breakpoints of a stop, including temporary ones that are gone."""
        return tuple(line for number in numbers if number in self._met for line in self._met[number].commands)

    def noun_of(self, numbers: Iterable[int]) -> str:
        """Return what a stop at these is called: what the first of them is, including temporary ones that are gone."""
        return next((self._met[number].noun for number in numbers if number in self._met), "breakpoint")

    def lines_of(self, numbers: Iterable[int]) -> tuple[str, ...]:
        """Return the source lines that breakpoints of a stop are on, including temporary ones that are gone."""
        met = (self._met[number] for number in numbers if number in self._met)
        return tuple(each.where for each in met if each.kind == "line")

    def errors_of(self, numbers: Iterable[int]) -> tuple[str, ...]:
        """Return why the conditions of the breakpoints of a stop could not be computed, of those that could not."""
        met = (self._met[number] for number in numbers if number in self._met)
        return tuple(f"the condition of {each.number}, {each.condition}, could not be computed: {each.error}"
                     for each in met if each.error)  # fmt: skip

    def delete(self, *numbers: int) -> tuple[Breakpoint, ...]:
        """Remove breakpoints, all without numbers, and return them."""
        gone = tuple(self._chosen(numbers))
        for each in gone:
            self._table.pop(each.number, None)
            self.passing.pop(each.number, None)
        self._refresh()
        return gone

    def enable(self, *numbers: int, once: bool = False, delete: bool = False) -> tuple[Breakpoint, ...]:
        """Enable breakpoints, all without numbers, and return them; `once` and `delete` say what a hit does to them."""
        return self._switch(numbers, True, once, delete)

    def disable(self, *numbers: int) -> tuple[Breakpoint, ...]:
        """Disable breakpoints, all without numbers, and return them."""
        return self._switch(numbers, False)

    def _switch(
        self, numbers: Iterable[int], enabled: bool, once: bool = False, delete: bool = False
    ) -> tuple[Breakpoint, ...]:
        chosen = tuple(self._chosen(numbers))
        for each in chosen:
            each.enabled, each.once, each.temporary = enabled, once, each.temporary or delete
        self._refresh()
        return chosen

    # --- asked while the program moves -------------------------------------------------------------------------------

    def get(self, number: int) -> Breakpoint:
        """Return a breakpoint by number; NotFoundError."""
        return self._chosen([number])[0]

    def at(self, core: int, engine: str, pc: int) -> tuple[int, ...]:
        """Return the numbers of the breakpoints on a word."""
        return tuple(each.number for each in self._table.values() if (core, engine, pc) in each.places)

    def pass_by(self, each: Breakpoint) -> bool:
        """Count a hit of a breakpoint; return whether it stops."""
        each.hits += 1
        if each.ignore > 0:
            each.ignore -= 1
            return False
        # Kept where a temporary one goes: its commands, its noun and its error are asked for behind the stop.
        self._met[each.number] = each
        if each.temporary:
            self._table.pop(each.number, None)
            self._refresh()
        elif each.once:
            each.enabled = False
            self._refresh()
        return True

    def _chosen(self, numbers: Iterable[int]) -> list[Breakpoint]:
        wanted = list(dict.fromkeys(numbers))
        missing = [str(number) for number in wanted if number not in self._table]
        if missing:
            raise NotFoundError(f"no breakpoint {', '.join(missing)}")
        return [self._table[number] for number in wanted] if wanted else list(self._table.values())

    def _refresh(self) -> None:
        enabled = [each for each in self._table.values() if each.enabled and each.here]
        self.before = tuple(each for each in enabled if not each.after)
        self.after = tuple(each for each in enabled if each.after)
