"""Words every engine has in compiled streams: synchronisation, ordering, waits. Source: isa.md 2, 7."""

from __future__ import annotations

from formats.engines import ENGINES
from formats.errors import FormatError
from formats.isa.behaviour import Duration
from formats.isa.declared import Declared
from formats.isa.enums import OrderingMode, UpdateMode, WaitMode
from formats.isa.field import Enumeration, Integer
from formats.isa.instruction import Instruction
from formats.isa.signals import HEADER_SLOT, SECOND_SLOT, Slot
from formats.isa.sync import Update, Wait, slot_omits, update_text, wait_text
from formats.isa.syntax import CACHE_LIMIT, Formatter, Item, Key, Omitter, Tokens

__all__ = ["EventSemaphore", "Nop", "OpcodeCC", "SetOrderingMode"]


# Bytes 32 to 43 are the header's synchronisation block once more, with a value for the update in addition (isa.md 7).
class _SecondSlot(Item):
    """The second wait and the second update of EVENT_SEMAPHORE."""

    def covers(self, cls: type[Declared]) -> tuple[str, ...]:
        return ("wait2_mode", "wait2_index", "wait2_value", "update2_mode", "update2_index", "update2_value")

    def form(self, cls: type[Declared]) -> str:
        return "[WAIT] [UPDATE]"

    def bind(self, cls: type[Declared]) -> Formatter:
        def text(raw: bytes) -> str:
            block = raw[32:44]
            found = known.get(block)
            if found is None:
                wait, update = _second(raw)
                found = " ".join([*([wait_text(*wait)] if wait else ()), *([update_text(*update)] if update else ())])
                if len(known) < CACHE_LIMIT:
                    known[block] = found
            return found

        known: dict[bytes, str] = {}
        return text

    def omits(self, cls: type[Declared]) -> Omitter | None:
        def omitted(raw: bytes) -> tuple[str, ...]:
            block = raw[32:44]
            found = known.get(block)
            if found is None:
                found = tuple(name.replace("_", "2_") for name in slot_omits(*_second(raw)))
                if len(known) < CACHE_LIMIT:
                    known[block] = found
            return found

        known: dict[bytes, tuple[str, ...]] = {}
        return omitted

    def parse(self, cls: type[Declared], tokens: Tokens, values: dict[str, object]) -> None:
        for kind, mode, number, value in tokens.syncs:
            if f"{kind}2_mode" in values:
                raise FormatError(f"{cls.NAME} has two waits and two updates at most", field=f"{kind}2_mode")
            values.update({f"{kind}2_mode": mode, f"{kind}2_index": number, f"{kind}2_value": value})
        tokens.syncs.clear()


def _second(raw: bytes) -> tuple[Wait, Update]:
    return (
        Wait(raw[32], raw[33], int.from_bytes(raw[36:40], "little")),
        Update(raw[34], raw[35], int.from_bytes(raw[40:44], "little")),
    )


class EventSemaphore(Instruction):
    """Wait and signal without touching data; the only word with two waits and two updates."""

    __slots__ = ()
    CALM = BESIDE = True
    # A wait in front of `setter=` is the header's, one behind it the second slot's, as profiles print them (isa.md 12).
    HEADER_ENDS = "setter="
    NAME = "EVENT_SEMAPHORE"
    OPCODE = 0xA0
    ENGINES = ENGINES
    CITE = "isa.md 7 (a0)"
    COST = Duration("event_semaphore")
    setter = Integer(12, 1, "setter", provenance="inferred", known=range(1))
    wait2_mode = Enumeration(32, WaitMode, "second wait: how")
    wait2_index = Integer(33, 1, "second wait: semaphore or event")
    update2_mode = Enumeration(34, UpdateMode, "second update: what")
    update2_index = Integer(35, 1, "second update: semaphore or event")
    wait2_value = Integer(36, 4, "second wait: value")
    update2_value = Integer(40, 4, "second update: value for += and =")
    SYNC = (HEADER_SLOT, Slot(SECOND_SLOT, "2", valued=True))
    SYNTAX = (Key("setter"), _SecondSlot())

    @property
    def wait2(self) -> Wait:
        """Return the second condition."""
        return _second(self.raw)[0]

    @property
    def update2(self) -> Update:
        """Return the second signal."""
        return _second(self.raw)[1]


class Nop(Instruction):
    """Do nothing but wait and signal."""

    __slots__ = ()
    CALM = True
    NAME = "NOP"
    OPCODE = 0xA4
    ENGINES = ENGINES
    CITE = "isa.md 7 (a4)"
    cycle = Integer(12, 4, "cycles", unit="cycles")
    SYNTAX = (Key("cycle"),)


class SetOrderingMode(Instruction):
    """Choose how strictly the stream is ordered."""

    __slots__ = ()
    CALM = BESIDE = True
    NAME = "SET_ORDERING_MODE"
    OPCODE = 0xB1
    ENGINES = ENGINES
    CITE = "isa.md 7 (b1)"
    COST = Duration("control")
    ordering_mode = Enumeration(12, OrderingMode, "ordering mode")
    SYNTAX = (Key("ordering_mode"),)


class OpcodeCC(Instruction):
    """Mark the start of a gen3 stream; the loader drops it. Its real name is unknown."""

    __slots__ = ()
    NAME = "OPCODE_CC"
    OPCODE = 0xCC
    ENGINES = ENGINES
    GENERATIONS = ("gen3", "gen4")
    CITE = "isa.md 7 (cc)"
    COST = Duration("control")
