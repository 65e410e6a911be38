"""Every kind of finding that a check can give: the one list that reports, rules of SARIF and tests go by."""

from __future__ import annotations

from formats.named_tuple import NamedTuple

__all__ = ["KINDS", "Kind"]


class Kind(NamedTuple):
    """One kind: how bad it is, and what is wrong in one sentence."""

    severity: str
    about: str


# By "tool:kind". Kinds of memcheck are those of `emulator.faults`, and "rule"; "numerical" has no model, "timeout" is
# synccheck's, "unsupported" is a limit of this project and nothing that a program does wrong.
KINDS: dict[str, Kind] = {
    "memcheck:oob": Kind("error", "An access leaves the memory or the variable that it belongs to."),
    "memcheck:partitions": Kind("error", "An access goes on behind the last partition."),
    "memcheck:bank": Kind("error", "A result of the Tensor engine crosses a PSUM bank."),
    "memcheck:alignment": Kind("error", "An address is no multiple of the element size."),
    "memcheck:access": Kind("error", "An engine touches a memory or register that it cannot reach."),
    "memcheck:operand": Kind("error", "A field or a value that an instruction reads has no meaning for it."),
    "memcheck:semaphore": Kind("error", "A semaphore goes below zero, or beyond 32 bits."),
    "memcheck:tile": Kind("error", "A word or transfer leaves the tiles on chip that it uses."),
    "memcheck:tile-overlap": Kind("error", "Bytes are read through a tile after another one overwrote them."),
    "memcheck:constant": Kind("warning", "A constant of the file is overwritten, for every later execution too."),
    "memcheck:table": Kind("error", "A function that the loaded function table does not hold, or no table at all."),
    "memcheck:psum-group": Kind("warning", "A group of products in PSUM that nothing ends before it is used or left."),
    "memcheck:psum-unread": Kind("warning", "A group of products in PSUM is overwritten before anything read it."),
    "memcheck:branch": Kind("error", "A branch goes to where no instruction begins."),
    "memcheck:rule": Kind("warning", "An operand breaks a documented rule, here without an effect."),
    "initcheck:undefined-output": Kind("error", "Bytes of an output come from bytes that nothing wrote."),
    "initcheck:undefined-register": Kind(
        "error", "A branch, or a read, goes by a register that nothing loaded, or unwritten bytes."
    ),
    "initcheck:undefined-fault": Kind("error", "A word reads bytes that nothing wrote, and faults."),
    "initcheck:output-unwritten": Kind("warning", "Bytes of an output are never written."),
    "initcheck:unwritten-read": Kind("note", "Bytes that nothing wrote are read; no output depends on them."),
    "racecheck:write-read": Kind("error", "Nothing orders a read behind the write of the same bytes."),
    "racecheck:read-write": Kind("error", "Nothing orders a write behind a read of the same bytes."),
    "racecheck:write-write": Kind("error", "Nothing orders two writes of the same bytes."),
    "racecheck:same-bytes": Kind("note", "Two cores store the same bytes, in no given order."),
    "racecheck:unused-read": Kind("note", "A transfer reads what may still be written; no output depends on that."),
    "racecheck:overlap": Kind("error", "One transfer touches bytes twice, once to write, in no given order."),
    "racecheck:in-place": Kind("warning", "A word writes bytes that it reads later: what a device reads is open."),
    "racecheck:duplicate-index": Kind("error", "Rows of one scatter go to the same place with different bytes."),
    "racecheck:output-not-awaited": Kind("error", "The program may end before a store of an output has."),
    "synccheck:never-signalled": Kind("error", "A wait that nothing in the program signals."),
    "synccheck:never-met": Kind("error", "A wait for more than all signals of the program come to."),
    "synccheck:deadlock": Kind("error", "Engines wait for one another in a circle."),
    "synccheck:livelock": Kind("error", "An engine goes round a loop that nothing ends."),
    "synccheck:barrier": Kind("error", "A core barrier that only one of the cores reaches."),
    "synccheck:ranks": Kind("error", "A collective that other ranks do not come to, or call differently."),
    "synccheck:pipe": Kind("error", "Cores exchange tiles on pipes that never meet."),
    "synccheck:fault": Kind("note", "An engine waits for one that has faulted."),
    "synccheck:blocked": Kind("note", "An engine waits for one that is stuck itself."),
    "synccheck:overshoot": Kind("error", "A semaphore can pass the value that a wait wants exactly."),
    "synccheck:ambiguous": Kind("error", "A wait that signals of different producers can satisfy."),
    "synccheck:unordered-set": Kind("error", "A semaphore is set to a number, in no order with what raises it."),
    "synccheck:lost-signal": Kind("error", "A semaphore is lowered, in no order with a wait that needs it higher."),
    "synccheck:count-mismatch": Kind("error", "A wait for a part of what a DMA transfer raises."),
    "synccheck:ring-full": Kind("warning", "More descriptors are under way than a ring of the queue holds."),
    "synccheck:never-triggered": Kind("warning", "A DMA block that nothing triggers."),
    "synccheck:double-set": Kind("error", "An event is set again before anybody consumed it."),
    "synccheck:event-left": Kind("warning", "An event is still set at the end of the program."),
    "synccheck:leftover": Kind("note", "A semaphore ends above what any wait asks for."),
    "nancheck:nan": Kind("error", "Elements of an output are NaN."),
    "nancheck:inf": Kind("warning", "Elements of an output are infinite."),
    "nancheck:overflow": Kind("warning", "Numbers are stored as integers of a type that does not hold them."),
    "nancheck:rounded": Kind("warning", "Integers are computed with in fp32, which does not hold them."),
    "lint:dead-store": Kind("note", "A word or transfer writes bytes that nothing reads."),
    "lint:reload": Kind("note", "Device memory is loaded again while an unchanged copy is on chip."),
    "lint:serial-queue": Kind("note", "A queue stands idle between two transfers that need no order."),
    "lint:redundant-wait": Kind("note", "A wait for what its engine knows already."),
}
