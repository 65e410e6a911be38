"""What a word waits for and what it signals, in one place, from where its class declares these fields.

A class lists in `SYNC` the parts that synchronise it: the slots of header and EVENT_SEMAPHORE, a barrier, what a DMA
transfer raises at its end, values written to device addresses. Everybody else reads `Instruction.waits` and `.signals`.
Source: isa.md 2, 3, 8, 10.2.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping
from operator import itemgetter
from typing import Any, Protocol

from formats.isa.enums import UpdateMode, WaitMode
from formats.isa.field import Field
from formats.isa.sync import wait_text
from formats.named_tuple import NamedTuple

__all__ = [
    "BARRIER",
    "DMA",
    "HEADER",
    "HEADER_SLOT",
    "SECOND_SLOT",
    "WRITE",
    "Awaited",
    "Meet",
    "Part",
    "Raise",
    "Signal",
    "Slot",
    "Store",
    "SyncReader",
    "unpacker",
]

# What in a word waits or signals.
HEADER, SECOND_SLOT, BARRIER, DMA, WRITE = "header", "second slot", "barrier", "dma", "write"

_made = tuple.__new__  # a named tuple in half the time
_STEPS: dict[int, int] = {UpdateMode.SEM_INC: 1, UpdateMode.SEM_DEC: -1}
Fields = Mapping[str, Field[Any]]
Unpack = Callable[..., tuple[int, ...]]  # of a word, or of bytes and the offset at which one begins


class Awaited(NamedTuple):
    """What a word waits for: `kind` ("semaphore" or "event") number `index` of its core, by `mode`, to be `value`."""

    kind: str
    index: int  # type: ignore[assignment]  # a tuple's own index() is never wanted here
    mode: int
    value: int
    by: str

    @property
    def text(self) -> str:
        """Return the condition in the profiler's grammar."""
        return wait_text(self.mode, self.index, self.value)


class Signal(NamedTuple):
    """What a word signals: `amount` is what it adds, `written` the value it writes, None where it does the other.

    `index` is a number on the word's own core, with `peer` on the other one of the pair. A value that goes to a device
    address has kind "address": what stands there, only the address map of the chip tells. `mode` is the update's, 0
    where none is spelled out.
    """

    kind: str
    index: int  # type: ignore[assignment]  # as above
    mode: int
    amount: int | None
    written: int | None
    by: str
    peer: bool = False

    @property
    def value(self) -> int | None:
        """Return the number that comes with the signal, None where it has none."""
        return self.amount if self.written is None else self.written


WaitReader = Callable[[bytes], tuple[Awaited, ...]]
SignalReader = Callable[[bytes], tuple[Signal, ...]]


class Part(Protocol):
    """One thing in a word that synchronises it, in terms of the fields of its class."""

    def waits(self, fields: Fields) -> WaitReader | None:
        """Return what reads the waits of a word, None where there is nothing to wait for."""

    def signals(self, fields: Fields) -> SignalReader:
        """Return what reads the signals of a word."""

    def waiting(self) -> tuple[str, ...]:
        """Return the fields that say whether the word waits; zero in all of them makes it wait for nothing."""

    def signalling(self) -> tuple[str, ...]:
        """Return the fields that decide what it signals."""


class Slot(NamedTuple):
    """One wait and one update; `number` is part of the fields' names, `valued` tells that the update has a value."""

    by: str
    number: str = ""
    valued: bool = False

    def waits(self, fields: Fields) -> WaitReader:
        unpack = unpacker(fields, *(f"wait{self.number}_{name}" for name in ("mode", "index", "value")))
        at, by, event = fields[self.waiting()[0]].offset, self.by, int(WaitMode.EVENT_SET)

        def read(raw: bytes) -> tuple[Awaited, ...]:
            if not raw[at]:
                return ()
            mode, index, value = unpack(raw)
            return (_made(Awaited, ("event" if mode == event else "semaphore", index, mode, value, by)),)

        return read

    def signals(self, fields: Fields) -> SignalReader:
        unpack, by, valued = unpacker(fields, *self.signalling()), self.by, self.valued

        def read(raw: bytes) -> tuple[Signal, ...]:
            mode, index, *value = unpack(raw)
            if not mode:
                return ()
            if mode == UpdateMode.EVENT_SET:
                return (Signal("event", index, mode, None, 1, by),)
            if valued and mode == UpdateMode.SEM_WRITE_IMM:
                return (Signal("semaphore", index, mode, None, value[0], by),)
            # None for an update that has no meaning yet: whoever carries it out refuses the word
            amount = value[0] if valued and mode == UpdateMode.SEM_ADD_IMM else _STEPS.get(mode)
            return (Signal("semaphore", index, mode, amount, None, by),)

        return read

    def waiting(self) -> tuple[str, ...]:
        return (f"wait{self.number}_mode",)

    def signalling(self) -> tuple[str, ...]:
        names = ("mode", "index", "value") if self.valued else ("mode", "index")
        return tuple(f"update{self.number}_{name}" for name in names)


HEADER_SLOT = Slot(HEADER)


class Meet(NamedTuple):
    """A barrier: raises a semaphore of the other core, waits until that core has raised the own one, takes it back."""

    semaphore: str

    def waits(self, fields: Fields) -> WaitReader:
        unpack = unpacker(fields, self.semaphore)
        # at least 1, not exactly: the other core may be one barrier ahead and have raised it again
        return lambda raw: (Awaited("semaphore", unpack(raw)[0], int(WaitMode.SEM_GE), 1, BARRIER),)

    def signals(self, fields: Fields) -> SignalReader:
        unpack = unpacker(fields, self.semaphore)
        return lambda raw: (Signal("semaphore", unpack(raw)[0], 0, 1, None, BARRIER, True),)

    def waiting(self) -> tuple[str, ...]:
        return ()

    def signalling(self) -> tuple[str, ...]:
        return (self.semaphore,)


class Raise(NamedTuple):
    """What the DMA transfer that a word starts raises at its end."""

    semaphore: str
    increment: str
    peer: bool = False

    def waits(self, fields: Fields) -> None:
        return None

    def signals(self, fields: Fields) -> SignalReader:
        number, amount = unpacker(fields, self.semaphore), unpacker(fields, self.increment)
        return lambda raw: (Signal("semaphore", number(raw)[0], 0, amount(raw)[0], None, DMA, self.peer),)

    def waiting(self) -> tuple[str, ...]:
        return ()

    def signalling(self) -> tuple[str, ...]:
        return self.semaphore, self.increment


class Store(NamedTuple):
    """A value that a word writes to a device address, where `size` is not 0."""

    size: str
    address: str
    data: str

    def waits(self, fields: Fields) -> None:
        return None

    def signals(self, fields: Fields) -> SignalReader:
        unpack = unpacker(fields, *self.signalling())

        def read(raw: bytes) -> tuple[Signal, ...]:
            size, address, data = unpack(raw)
            return (Signal("address", address, 0, None, data, WRITE),) if size else ()

        return read

    def waiting(self) -> tuple[str, ...]:
        return ()

    def signalling(self) -> tuple[str, ...]:
        return self.size, self.address, self.data


class SyncReader:
    """The parts of one class bound to its fields; `signal_bytes` takes from a word all that decides what it signals."""

    __slots__ = ("signal_bytes", "signals", "waiting", "waits")

    def __init__(self, fields: Fields, parts: tuple[Part, ...]) -> None:
        waits = [read for part in parts if (read := part.waits(fields)) is not None]
        signals = [part.signals(fields) for part in parts]
        # Nearly every class has the header alone, whose reader then serves as it is.
        self.waits: WaitReader = (
            waits[0] if len(waits) == 1 else lambda raw: tuple([each for read in waits for each in read(raw)])
        )
        self.signals: SignalReader = (
            signals[0] if len(signals) == 1 else lambda raw: tuple([each for read in signals for each in read(raw)])
        )
        self.waiting = tuple(name for part in parts for name in part.waiting())
        self.signal_bytes = itemgetter(*_runs([fields[name] for part in parts for name in part.signalling()]))


def unpacker(fields: Fields, *names: str) -> Unpack:
    """Return what reads some fields of a word at once; they follow one another in it, values of 4 bytes are signed."""
    form, at = "<", 0
    for field in (fields[name] for name in names):
        # Semaphores count in signed 32 bits (isa.md 3); addresses and data of 8 bytes do not.
        form += f"{field.offset - at}x" + {1: "B", 4: "i", 8: "Q"}[field.size]
        at = field.offset + field.size
    return struct.Struct(form).unpack_from


def _runs(fields: list[Field[Any]]) -> list[slice]:
    """Return the bytes of some fields as few slices."""
    runs: list[slice] = []
    for field in sorted(fields, key=lambda each: each.offset):
        start, stop = field.offset, field.offset + field.size
        if runs and runs[-1].stop >= start:
            runs[-1] = slice(runs[-1].start, max(runs[-1].stop, stop))
        else:
            runs.append(slice(start, stop))
    return runs
