"""The synchronisation block of a word: what it waits for, what it signals, and both as text. Source: isa.md 2, 12."""

from __future__ import annotations

import re

from formats.errors import FormatError
from formats.isa.enums import UpdateMode, WaitMode
from formats.named_tuple import NamedTuple

__all__ = ["SyncToken", "Update", "Wait", "header_text", "parse_sync", "slot_omits", "update_text", "wait_text"]

_CACHE_LIMIT = 1 << 16
_WAIT_OPERATORS = {">=": WaitMode.SEM_GE, "==": WaitMode.SEM_EQ, ">": WaitMode.SEM_GT}
_UPDATE_OPERATORS = {
    "++": UpdateMode.SEM_INC,
    "--": UpdateMode.SEM_DEC,
    "+=": UpdateMode.SEM_ADD_IMM,
    "=": UpdateMode.SEM_WRITE_IMM,
}
# Modes whose text has no place for a value; a mode without a name prints one.
_UNVALUED = frozenset(UpdateMode) - {UpdateMode.SEM_ADD_IMM, UpdateMode.SEM_WRITE_IMM}


class Wait(NamedTuple):
    """Condition before a word may start: semaphore or event `index` against `value`."""

    mode: int
    index: int  # type: ignore[assignment]  # a tuple's own index() is never wanted here
    value: int

    def __bool__(self) -> bool:
        return self.mode != 0


class Update(NamedTuple):
    """Signal when a word completes."""

    mode: int
    index: int  # type: ignore[assignment]  # as above
    value: int

    def __bool__(self) -> bool:
        return self.mode != 0


def wait_text(mode: int, index: int, value: int) -> str:
    """Return a wait in the profiler grammar; a mode without a name prints as `wait6[3]:5`."""
    if mode == WaitMode.SEM_GE:
        return f"S[{index}]>={value}"
    if mode == WaitMode.SEM_EQ:
        return f"S[{index}]=={value}"
    if mode == WaitMode.SEM_GT:
        return f"S[{index}]>{value}"
    if mode == WaitMode.EVENT_SET:
        return f"E[{index}]==1-"
    return f"wait{mode}[{index}]:{value}"


def update_text(mode: int, index: int, value: int) -> str:
    """Return an update in the profiler grammar; a mode without a name prints as `update0x7[3]:5@complete`."""
    if mode == UpdateMode.SEM_INC:
        return f"S[{index}]++@complete"
    if mode == UpdateMode.SEM_DEC:
        return f"S[{index}]--@complete"
    if mode == UpdateMode.SEM_ADD_IMM:
        return f"S[{index}]+={value}@complete"
    if mode == UpdateMode.SEM_WRITE_IMM:
        return f"S[{index}]={value}@complete"
    if mode == UpdateMode.EVENT_SET:
        return f"E[{index}]+@complete"
    return f"update{mode:#x}[{index}]:{value}@complete"


class SyncToken(NamedTuple):
    """One parsed synchronisation token; `kind` is "wait" or "update"."""

    kind: str
    mode: int
    number: int
    value: int


_WAIT = re.compile(r"\$?(?:S\[(\d{1,12})\](>=|==|>)(\d{1,12})|E\[(\d{1,12})\]==1-)", re.ASCII)
_UPDATE = re.compile(r"\$?(?:S\[(\d{1,12})\](?:(\+\+|--)|(\+=|=)(\d{1,12}))|E\[(\d{1,12})\]\+)@complete", re.ASCII)
_ODD = re.compile(r"(wait|update)(0x[0-9a-f]{1,8}|0|[1-9]\d{0,9})\[(\d{1,12})\]:(\d{1,12})(?:@complete)?", re.ASCII)


def parse_sync(word: str) -> SyncToken | None:
    """Return the wait or update that a token spells, None for a token of any other kind."""
    if "]" not in word or word[0] not in "$SEwu":
        return None
    if match := _WAIT.fullmatch(word):
        if match[4] is not None:
            return SyncToken("wait", WaitMode.EVENT_SET, int(match[4]), 0)
        return SyncToken("wait", _WAIT_OPERATORS[match[2]], int(match[1]), int(match[3]))
    if match := _UPDATE.fullmatch(word):
        if match[5] is not None:
            return SyncToken("update", UpdateMode.EVENT_SET, int(match[5]), 0)
        return SyncToken("update", _UPDATE_OPERATORS[match[2] or match[3]], int(match[1]), int(match[4] or 0))
    if match := _ODD.fullmatch(word):
        return SyncToken(match[1], int(match[2], 0), int(match[3]), int(match[4]))
    return None


def slot_omits(wait: Wait, update: Update) -> tuple[str, ...]:
    """Return which of wait_index, wait_value, update_index and update_value their text leaves out though not zero."""
    names = []
    if wait.index and not wait.mode:
        names.append("wait_index")
    if wait.value and wait.mode in (WaitMode.NONE, WaitMode.EVENT_SET):
        names.append("wait_value")
    if update.index and not update.mode:
        names.append("update_index")
    if update.value and update.mode in _UNVALUED:
        names.append("update_value")
    return tuple(names)


_HEADERS: dict[bytes, tuple[str, tuple[str, ...]]] = {}


def header_text(block: bytes) -> tuple[str, tuple[str, ...]]:
    """Return the text of bytes 4 to 11 of a word, and the names of header fields which that text leaves out."""
    found = _HEADERS.get(block)
    if found is None:
        wait = Wait(block[0], block[1], int.from_bytes(block[4:8], "little"))
        update = Update(block[2], block[3], 0)
        parts = ([wait_text(*wait)] if wait else []) + ([update_text(*update)] if update else [])
        found = " ".join(parts), slot_omits(wait, update)
        if len(_HEADERS) < _CACHE_LIMIT:
            _HEADERS[bytes(block)] = found
    return found


def header_values(token: SyncToken) -> dict[str, int]:
    """Return the header fields that a token sets; the header has no place for the value of `+=` and `=`."""
    values = {f"{token.kind}_mode": token.mode, f"{token.kind}_index": token.number}
    if token.kind == "wait":
        values["wait_value"] = token.value
    elif token.value:
        raise FormatError(
            "the header of a word has no place for an update's value",
            field="update_mode",
            expected="a second update of EVENT_SEMAPHORE",
            got=token.value,
        )
    return values
