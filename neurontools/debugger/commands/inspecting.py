"""The commands that look: print, x, list, disassemble, why, last-write, export, save-core, state, focus."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, cast

from neurontools.debugger.commands.arguments import alone, core_and_words, engine_of, needed
from neurontools.debugger.commands.command import AnyCommand, Command
from neurontools.debugger.commands.completion import engines, tensors
from neurontools.debugger.commands.writing import shown
from neurontools.debugger.errors import UsageError
from neurontools.debugger.expressions import FUNCTIONS
from neurontools.debugger.names import parse_core, parse_number, positive
from neurontools.debugger.results import (
    Computed,
    Disassembly,
    Examined,
    FrameRow,
    LastWrite,
    Listing,
    State,
    TensorValue,
    Why,
)
from neurontools.debugger.view import last_write_lines, state_lines, why_lines
from neurontools.debugger.view_code import disassembly_lines, listing_lines
from neurontools.debugger.view_memory import examined_lines, value_lines
from neurontools.debugger.view_tables import frames
from neurontools.debugger.writing import forced

if TYPE_CHECKING:
    from neurontools.debugger.session import Session

__all__ = ["INSPECTING"]

_PRINTED: type[TensorValue | Computed] = cast("Any", TensorValue | Computed)
_EXAMINED: type[Examined | Disassembly] = cast("Any", Examined | Disassembly)
_FORCE = "On the screen, -f replaces a file that exists."


def _export(session: Session, rest: str) -> str:
    from neurontools.program.arrays import export_array  # deferred: start-up

    force, rest = forced(rest)
    tensor, _, file = rest.rpartition(" ")
    if not tensor.strip() or not file.endswith(".npy"):
        raise UsageError("export TENSOR or TENSOR[slice] FILE.npy")
    place = session.writing.place(file, force)
    found = session.tensor(session.bound(tensor.strip()))
    export_array(place, found.array)
    return f"{file}: {found.array.dtype.name}{list(found.array.shape)}"


def _save_core(session: Session, rest: str) -> str:
    force, rest = forced(rest)
    words = needed(rest, "save-core FILE [light|full]").split()
    level = words.pop() if len(words) > 1 and words[-1] in ("light", "full") else "full"
    path = " ".join(words)
    return f"{path}: {level} core dump, {session.save_core(session.writing.place(path, force), level)} bytes"


def _examine(session: Session, rest: str) -> Examined | Disassembly:
    found = re.fullmatch(r"(?:/(\S+))?\s*(.*)", rest)
    text, address = (found[1], found[2]) if found else (None, rest)
    words = re.fullmatch(r"(\d*)i", text or "")
    if words is not None:
        return _words(session, address, parse_number(words[1] or "1", "a count"))
    return session.examine(session.bound(address) or None, format=text or "")


def _words(session: Session, address: str, count: int) -> Disassembly:
    """Return words from ENGINE:PC on, else from where the focus engine stands."""
    core, place = parse_core(address)
    engine, colon, pc = place.rpartition(":")
    if not colon and not pc[:1].isdigit():
        engine, pc = place, ""
    where = session.execution.standing(core, engine or None)
    first = parse_number(pc, "a pc") if pc else where[2]
    whole = session.disassemble(where[1], first, 1, where[0])
    return whole._replace(rows=session.words_from(first, positive(count), where[1], where[0]))


def _examined_lines(item: Examined | Disassembly) -> Iterable[str]:
    return disassembly_lines(item) if isinstance(item, Disassembly) else examined_lines(item)


def _disassemble(session: Session, rest: str) -> Disassembly:
    core, words = core_and_words(rest)
    engine = words.pop(0) if words and not words[0][0].isdigit() else None
    if engine is not None and ":" in engine:
        engine, _, pc = engine.partition(":")
        words.insert(0, pc)
    values = [parse_number(word, "a pc or a count") for word in words]
    if len(values) > 2:
        raise UsageError("disassemble [ncN] [ENGINE] [PC [COUNT]]")
    around, size = [*values, None, None][:2]
    return session.disassemble(engine, around, 10 if size is None else size, core)


def _focus(session: Session, rest: str) -> State:
    engine, core = engine_of(rest)
    session.focus(core, engine)
    return session.state()


INSPECTING: tuple[AnyCommand, ...] = (
    Command("last-write", "ADDRESS[, BYTES] | TENSOR[slice]", "show what wrote there last",
            lambda session, rest: session.last_write(
                session.bound(needed(rest, "an address, TENSOR or TENSOR[slice]"))), LastWrite,
            last_write_lines, aliases=("lw",), words=tensors),
    Command("backtrace", "", "show the calls of the kernel's functions that led to where the focus engine stands",
            alone("backtrace", lambda session: session.backtrace()), tuple[FrameRow, ...], frames,
            aliases=("bt", "where"), nothing="the file does not say"),
    Command("why", "[ncN] [ENGINE]", "show what an engine waits for, and who could signal it",
            lambda session, rest: session.why(*engine_of(rest)), Why, why_lines, words=engines),
    Command("x", "/FORMAT ADDRESS", "show memory: a count, x d u f, b h w g or an element type; an engine or device "
            "address, PARTITION:BYTE, psum:P:B, hbm:A or TENSOR+BYTES", _examine, _EXAMINED, _examined_lines,
            words=tensors, repeats="name",
            details="x/8f 0:0x4000, x/4xb psum:3:0, x/16:bfloat16 y+0x40; without an address, what comes next;\n"
            "without a format, the last one. "
            "x/5i ENGINE:PC shows words, x/i the next ones of the focus engine."),
    Command("print", "[/FORMAT] EXPRESSION", "show a tensor, a slice of it, a counter, or what an expression is",
            shown, _PRINTED, value_lines, aliases=("p", "inspect"), words=tensors, keeps_listing=True,
            details="print y[0:4, ::2], print/x S[6], print PE.R[3], print max(abs(a - b)), print t[k, 0] with the\n"
            "kernel's variable k. Slices are NumPy's. Of a tensor range, mean and NaN count come first.\n"
            "Formats: x hexadecimal, d decimal, u unsigned, o octal, t binary, f floating point; of floating-point\n"
            "numbers x, u, o and t show the bits. Functions: " + ", ".join(FUNCTIONS) + ".\n"
            "Operators are Python's, @ too; .T, .shape and .size of arrays; min and max also take two values."),
    Command("export", "[-f] TENSOR[slice] FILE.npy", "write a tensor or a slice of it to a file", _export, str,
            str.splitlines, words=tensors, details=_FORCE),
    Command("list", "[LINE | FILE:LINE | FUNCTION | FIRST,LAST]", "show source lines",
            lambda session, rest: session.list_source(rest or None), Listing, listing_lines, aliases=("l",),
            repeats="name", keeps_listing=True),
    Command("disassemble", "[ncN] [ENGINE] [PC [COUNT]]", "show words, and whether their waits hold", _disassemble,
            Disassembly, disassembly_lines, aliases=("disas",), words=engines, repeats="line"),
    Command("focus", "[ncN] [ENGINE]", "choose the core and engine that other commands refer to", _focus, State,
            state_lines, aliases=("f",), words=engines),
    Command("save-core", "[-f] FILE [light|full]", "write the present state of the device as a core dump", _save_core,
            str, str.splitlines, live=True, moves=True, details=_FORCE),
    Command("state", "", "show where the session stands", alone("state", lambda session: session.state()), State,
            state_lines),
)  # fmt: skip
