"""What a class of words declares of itself: the lower half of `Instruction`, which syntax, rules and checks look at."""

from __future__ import annotations

from typing import Any, ClassVar

from formats.dtypes import Dtype
from formats.isa.behaviour import Dataflow, Duration, EngineState, Passes
from formats.isa.field import Field
from formats.isa.operand import Pattern, Pointer
from formats.neuron_core import GENERATIONS

__all__ = ["Declared"]


class Declared:
    """One instruction word, which is its raw bytes; its class says what they hold and what the word does."""

    __slots__ = ("raw",)

    raw: bytes

    NAME: ClassVar[str] = ""
    OPCODE: ClassVar[int] = -1
    CODE: ClassVar[int] = -1  # extension code; -1 for real words
    SIZE: ClassVar[int] = 64
    ENGINES: ClassVar[tuple[str, ...]] = ()
    GENERATIONS: ClassVar[tuple[str, ...]] = GENERATIONS
    DIALECT: ClassVar[str] = "neuron"
    CITE: ClassVar[str] = ""
    PROVENANCE: ClassVar[str] = "observed"

    # --- derived when the class is made ------------------------------------------------------------------------------

    FIELDS: ClassVar[dict[str, Field[Any]]] = {}
    OPERANDS: ClassVar[dict[str, Pattern | Pointer]] = {}
    HEADER: ClassVar[dict[str, Field[Any]]] = {}
    _TEMPLATE: ClassVar[bytes] = bytes(64)

    # --- what the word does ------------------------------------------------------------------------------------------

    # How its outputs depend on its inputs.
    DATAFLOW: ClassVar[Dataflow] = Dataflow.ELEMENTS
    # Whether parts of its output may stay as they are, and whether it writes all of it whatever its operands hold.
    KEEPS: ClassVar[bool] = False
    OVERWRITES: ClassVar[bool] = False
    # The field whose number it puts where a condition does not hold.
    FILL: ClassVar[str] = ""
    # What it touches in its engine besides operands.
    STATE: ClassVar[EngineState] = EngineState.NONE
    # What it costs; None where `emulator.cost` has a function for it.
    COST: ClassVar[Passes | Duration | None] = None
    # Who carries it out where it has no executor.
    CARRIED_OUT: ClassVar[str] = ""
    # Whether it decides which word comes next, waits for all words before it, meets the other core.
    BRANCHES: ClassVar[bool] = False
    DRAINS: ClassVar[bool] = False
    MEETS: ClassVar[bool] = False
    # Whether it changes at most registers of its engine, beside what it signals.
    CALM: ClassVar[bool] = False
    # Whether data that it reads decide what the program does from there on.
    DECIDES: ClassVar[bool] = False
    # Whether it begins while the engine's data path is busy with the word before it.
    BESIDE: ClassVar[bool] = False
    # Whether it loads or compares registers of its engine: `loaded` and `compared` say which.
    REGISTERS: ClassVar[bool] = False
    # Whether an operation with more dimensions than a word has may become several words.
    CUTS: ClassVar[bool] = True

    @classmethod
    def defaults(cls) -> bytes:
        """Return the bytes of a word in which nothing has been set."""
        return cls._TEMPLATE

    @property
    def adds(self) -> bool:
        """Return whether the word adds to what its output holds."""
        return False

    @property
    def loaded(self) -> tuple[int, ...]:
        """Return the registers of its engine that the word loads."""
        return ()

    @property
    def compared(self) -> tuple[int, ...]:
        """Return the registers of its engine whose numbers decide what the word does."""
        return ()

    def uses(self, operand: str) -> bool:
        """Return whether the word uses an operand of its class."""
        return self.OPERANDS[operand].enabled(self.raw)

    def dtype_of(self, operand: Pattern | Pointer) -> int:
        """Return the code of an operand's element type."""
        dtype = operand.dtype
        return dtype if isinstance(dtype, Dtype) else self.FIELDS[dtype].read(self.raw)
