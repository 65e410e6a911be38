"""Setting breakpoints, watchpoints and catchpoints, and what belongs to one: condition, ignore count, commands."""

from __future__ import annotations

import re
from collections.abc import Iterable
from contextlib import suppress

from emulator.semaphores import COUNT
from emulator.session.breakpoints import WATCHES, Breakpoint
from emulator.session.conditions import Condition
from emulator.session.errors import UsageError
from emulator.session.names import parse_core
from emulator.session.places import regions_of_text
from emulator.session.rewind import Rewinder
from emulator.session.tensors import NAMED
from formats.errors import NotFoundError

__all__ = ["EVENTS", "Breaking"]

EVENTS = ("dma", "nan", "inf", "fault", "hang", "finding")  # what `catch` takes
_COUNTER = re.compile(r"([SsEe])\[(\d{1,9})\]")
_VALUE = re.compile(r"([SsEe]\[\d{1,9}\])\s*(>=|<=|==|!=|>|<)\s*(-?\w+)")


class Breaking(Rewinder):
    """The part of a session that sets what stops it."""

    def break_at(self, where: str, temporary: bool = False, condition: str | None = None) -> Breakpoint:
        """Stop `continue` before a place, or behind what makes a counter fulfil a comparison.

        A place is "PE:12", "kernel.py:88", a pc of the focus engine, each word of an engine or opcode, or each transfer
        of a queue; a comparison "S[5] >= 3" or "E[2] == 1". "nc1 " in front means one core only. Where there is a
        condition (see `emulator.session.conditions`) it stops only if that holds.
        """
        text = where.strip()
        core, rest = parse_core(text)
        found = _VALUE.fullmatch(rest)
        if found is None:
            made = Breakpoint(0, text, *self.program.resolve(text, self._focus[1]), temporary=temporary)
            return self._set(made, condition)
        counter = self._counter(found[1], core)
        try:
            value = int(found[3], 0)
        except ValueError:
            raise UsageError(f"{found[3]!r} is no number") from None
        shown = f"{found[1].upper()} {found[2]} {value} on nc{counter[0]}"
        made = Breakpoint(0, text, "value", shown, temporary=temporary, counter=counter, compare=(found[2], value))
        return self._set(made, condition)

    def tbreak(self, where: str, condition: str | None = None) -> Breakpoint:
        """Set a breakpoint that goes away when it is hit."""
        return self.break_at(where, temporary=True, condition=condition)

    def watch(self, where: str, kind: str = "write", condition: str | None = None) -> Breakpoint:
        """Stop behind what writes, reads or touches ("write", "read", "access") bytes or a tensor, as in `last_write`.

        "S[8]" and "E[3]" are a semaphore and an event, of which every change counts; "nc1 " in front chooses the core.
        """
        if kind not in WATCHES:
            raise UsageError(f"{kind!r} is none of {', '.join(WATCHES)}")
        text = where.strip()
        core, rest = parse_core(text)
        if _COUNTER.fullmatch(rest) is None:
            core = self._engine(None, core)[0]
            regions, shown = regions_of_text(self.device, self.tensors, text, core)
            return self._set(Breakpoint(0, text, kind, f"{kind} of {shown}", regions=regions), condition)
        if kind != "write":
            raise UsageError("of a semaphore or event changes are watched, not reads")
        counter = self._counter(rest, core)
        shown = f"change of {rest.upper()} on nc{counter[0]}"
        return self._set(Breakpoint(0, text, kind, shown, counter=counter), condition)

    def _counter(self, text: str, core: int | None) -> tuple[int, str, int]:
        found = _COUNTER.fullmatch(text)
        assert found is not None
        number = int(found[2])
        if number >= COUNT:
            raise NotFoundError(f"no {text}; there are 0 to {COUNT - 1}")
        return self._engine(None, core)[0], "semaphore" if found[1].upper() == "S" else "event", number

    def catch(self, what: str, condition: str | None = None, temporary: bool = False) -> Breakpoint:
        """Stop behind an event.

        "dma" is the completion of a transfer, "dma QUEUE" of one queue; "nan" and "inf" a word or transfer that writes
        one, "nan TENSOR[slice]" into a tensor that then holds one, "nan ADDRESS, BYTES" into bytes; "fault" and "hang"
        the end of an execution; "finding" something that the checks find (see `enable_checks`), "finding racecheck"
        one of them.
        """
        text = " ".join(what.split())
        kind, _, rest = text.partition(" ")
        if kind not in EVENTS:
            raise UsageError(f"catch what? {', '.join(EVENTS)}; not {kind or 'nothing'!r}")
        made = Breakpoint(0, text, kind, text, temporary=temporary)
        if kind == "dma":
            queues = [queue for queue in self.device.queues if rest in ("", queue.name)]
            if not queues:
                names = ", ".join(dict.fromkeys(queue.name for queue in self.device.queues)) or "none"
                raise NotFoundError(f"no queue {rest!r}; there is {names}")
            made.owners = frozenset((queue.core, queue.name) for queue in queues)
            made.where = f"completion of {rest or 'any transfer'}"
        elif kind in ("nan", "inf"):
            name = "NaN" if kind == "nan" else "Inf"
            made.where = f"{name} written"
            if rest:
                core = self._engine(None, parse_core(rest)[0])[0]
                made.regions, shown = regions_of_text(self.device, self.tensors, rest, core)
                made.where = f"{name} written into {shown}"
                made.tool = self._tensor_text(rest, core)
        elif kind == "finding":
            made.tool = self._finding_tool(rest)
            made.where = f"finding of {made.tool or 'any check'}"
        elif rest:
            raise UsageError(f"catch {kind} takes nothing more")
        return self._set(made, condition)

    def _tensor_text(self, text: str, core: int) -> str:
        """Return the tensor or slice that a place means, "" for an address."""
        rest = parse_core(text)[1]
        found = NAMED.fullmatch(rest)
        return rest if found is not None and found[1] in self.tensors.names(core) else ""

    def _finding_tool(self, name: str) -> str:
        from emulator.checks import tools_of

        wanted = tools_of([name]) if name else ()
        running = () if self._live is None else self._live.tools
        if not running or not set(wanted) <= set(running):
            raise UsageError(f"no check{f' {name}' if name else ''} runs along; `checks on` starts them")
        return wanted[0] if len(wanted) == 1 else ""

    def _set(self, made: Breakpoint, condition: str | None) -> Breakpoint:
        made.condition = self._condition(condition, made)
        return self._breakpoints.add(made)

    def _condition(self, text: str | None, of: Breakpoint) -> Condition | None:
        """Return a condition that has an answer now, or will have one: names are checked at once."""
        if text is None or not text.strip():
            return None
        made = Condition(text)
        core, engine = self._focus
        place = next(iter(sorted(of.places)), (core, engine, 0))
        with suppress(ArithmeticError):  # such as a division by what is zero now
            made.holds(self._moment((*place, "instruction"), self.time_ps, self.events))
        return made

    def condition(self, number: int, text: str | None = None) -> Breakpoint:
        """Let a breakpoint stop only where a condition holds; always, without one."""
        found = self._breakpoints.get(number)
        found.condition, found.error = self._condition(text, found), ""
        return found

    def ignore(self, number: int, count: int) -> Breakpoint:
        """Let a breakpoint be met `count` times, in either direction, before it stops."""
        if count < 0:
            raise UsageError(f"{count} is no count")
        found = self._breakpoints.get(number)
        found.ignore = count
        return found

    def set_commands(self, number: int, lines: Iterable[str]) -> Breakpoint:
        """Note the commands that whoever drives the session carries out where a breakpoint stops."""
        found = self._breakpoints.get(number)
        found.commands = tuple(lines)
        return found

    def commands_of(self, numbers: Iterable[int]) -> tuple[str, ...]:
        """Return the commands of the breakpoints of a stop."""
        return self._breakpoints.commands_of(numbers)

    def delete(self, *numbers: int) -> tuple[Breakpoint, ...]:
        """Remove breakpoints, all without numbers, and return them."""
        return self._breakpoints.delete(numbers)

    def enable(self, *numbers: int, once: bool = False, delete: bool = False) -> tuple[Breakpoint, ...]:
        """Enable breakpoints, all without numbers, and return them; `once` and `delete` say what a hit does to them."""
        return self._breakpoints.enable(numbers, True, once, delete)

    def disable(self, *numbers: int) -> tuple[Breakpoint, ...]:
        """Disable breakpoints, all without numbers, and return them."""
        return self._breakpoints.enable(numbers, False)

    @property
    def breakpoints(self) -> tuple[Breakpoint, ...]:
        """Return the breakpoints in the order they were set."""
        return self._breakpoints.all

    def info_breakpoints(self) -> tuple[Breakpoint, ...]:
        """Return the breakpoints."""
        return self._breakpoints.all
