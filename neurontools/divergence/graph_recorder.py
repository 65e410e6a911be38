"""What a run makes of each operation of its graph, kept for comparison: tensors, and tiles before others take them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from emulator.dma.transfer import Transfer
from emulator.dtypes import numpy_dtype
from emulator.events import Event
from formats.dtypes import Dtype
from formats.errors import FormatError
from formats.neff.operations import Held, Operation, Operations, Piece
from formats.neff.tiles import Tile
from neurontools.debugger.graph_values import in_tensor, indices, piece_values, shown_type

if TYPE_CHECKING:
    from neurontools.debugger import Session

__all__ = ["GraphRecorder", "Key"]

Array = npt.NDArray[Any]
Key = tuple[str, int]  # operation with the calls and loops around it, number of the result
_MOST = 4 << 30  # bytes of values kept from loops: later turns are not compared


class GraphRecorder:
    """An observer that keeps the values of operations.

    Those of a loop's body are kept turn by turn: all engines meet at the end of one, and tensors hold its values then.
    What lies in the state of the loop, which the end of a turn overwrites, is kept where the turn begins.
    """

    def __init__(self, session: Session, operations: Operations, core: int = 0) -> None:
        self.session, self.operations, self.core = session, operations, core
        self.kept = 0
        self._loops = {row.key for row in operations.rows if row.opcode == "while"}
        self._turns: dict[str, int] = defaultdict(int)
        self._tiles: dict[Key, dict[int, dict[int, Array]]] = defaultdict(lambda: defaultdict(dict))
        self._tensors: dict[Key, list[Array | None]] = defaultdict(list)
        self._pieces: dict[str, list[tuple[Key, str, int, Piece, Held]]] = defaultdict(list)
        self._looped: dict[str, list[tuple[Key, Held]]] = defaultdict(list)
        self._by_word: dict[tuple[int, str, int], list[tuple[Key, str, int, Piece, Held, Tile]]] = {}
        self._places: dict[tuple[int, str], list[Tile]] = defaultdict(list)
        self._marks: dict[tuple[str, int], tuple[str, bool]] = {}
        self._passed: dict[tuple[str, str, bool], int] = defaultdict(int)
        self._begun: dict[str, int] = defaultdict(int)
        self._begin: dict[Key, Array | None] = {}
        self._state: dict[str, list[tuple[Key, Held]]] = defaultdict(list)
        states = {row.key: {held.tensor for held in row.results} for row in operations.rows if row.opcode == "while"}
        for one in range(len(session.device.cores)):
            for tile in session.tensors.tiles(one):
                self._places[one, tile.name].append(tile)
        for row in operations.rows:
            loop = self.loop_of(row)
            for number, held in enumerate(row.results):
                key = row.key, number
                for index, piece in enumerate(held.pieces):
                    self._pieces[held.by or row.name].append((key, loop, index, piece, held))
                if held.tensor and loop:
                    (self._state if held.tensor in states[loop] else self._looped)[loop].append((key, held))
        self._find_marks()

    def loop_of(self, row: Operation) -> str:
        """Return the innermost loop that an operation is in the body of, "" for none."""
        parts = row.path.split("/") if row.path else []
        for count in range(len(parts), 0, -1):
            path = "/".join(parts[:count])
            if path in self._loops:
                return path
        return ""

    def _find_marks(self) -> None:
        """Find the words that load a loop's condition, which begin a turn, and those that branch back and end it."""
        names = {key.rpartition("/")[2]: key for key in self._loops}
        if not names:
            return
        program = self.session.program
        for core, engine, words in program.streams(self.core):
            for loaded in words:
                source = program.source(core, engine, loaded.pc)
                name, _, mark = ("" if source is None else source.name).rpartition("-")
                if mark in ("load", "branch") and name in names:
                    self._marks[engine, loaded.pc] = names[name], mark == "branch"

    def on_event(self, event: Event) -> None:
        """Keep what a completion made, or what a turn of a loop leaves."""
        if event.kind not in ("instruction", "dma"):
            return
        word = event.instruction
        engine = word.engine if isinstance(word, Transfer) else event.engine
        place = event.core, engine, event.pc
        mark = self._marks.get(place[1:]) if event.core == self.core else None  # loops are the first core's
        if mark is not None and event.kind == "instruction":
            loop, ends = mark
            self._passed[loop, engine, ends] += 1
            count = self._passed[loop, engine, ends]
            if ends and count > self._turns[loop]:
                self._end_turn(loop)
            elif not ends and count > self._begun[loop]:
                self._begun[loop] = count
                self._begin |= {key: self._copy(held) for key, held in self._state[loop]}
        found = self._by_word.get(place)
        if found is None:
            found = self._by_word[place] = list(self._made_by(*place))
        for key, around, index, piece, held, tile in found:
            memory = self.session.device.cores[event.core].memory.array(tile.space)
            turn = self._turns[around] if around else 0
            values = piece_values(piece, held.kept, tile, memory)
            if turn and not self._room(values.nbytes):
                continue
            self._tiles[key][turn][index] = values

    def _made_by(self, core: int, engine: str, pc: int) -> Iterator[tuple[Key, str, int, Piece, Held, Tile]]:
        source = self.session.program.source(core, engine, pc)
        for key, loop, index, piece, held in self._pieces.get((source and source.operation) or "", ()):
            for tile in self._places[core, piece.tile] if piece.core == core else ():
                span = tile.pcs.get(engine)
                if span is not None and span[0] <= pc <= span[1]:
                    yield key, loop, index, piece, held, tile

    def _end_turn(self, loop: str) -> None:
        for key, held in self._looped[loop]:
            self._tensors[key].append(self._copy(held))
        for key, _ in self._state[loop]:
            self._tensors[key].append(self._begin.get(key))
        self._turns[loop] += 1

    def _copy(self, held: Held) -> Array | None:
        found = self._tensor(held) if self._room(held.nbytes) else None
        return None if found is None else found.copy()

    def _room(self, nbytes: int) -> bool:
        self.kept += nbytes
        return self.kept <= _MOST

    def turns(self, loop: str) -> int:
        """Return how many turns of a loop the device made, over all its executions."""
        return self._turns[loop]

    def value(self, row: Operation, number: int, turn: int = 0) -> Array | None:
        """Return the value of an operation's result, in some turn of the loop around it; None where it was not kept."""
        held, key = row.results[number], (row.key, number)
        if held.number is not None:
            return shown_type(np.full(held.shape, held.number, numpy_dtype(Dtype.from_numpy_name(held.kept))), held)
        if held.tensor:
            if self.loop_of(row):
                past = self._tensors[key]
                return past[turn] if turn < len(past) else None
            return self._tensor(held)
        return self._assembled(held, key, turn)

    def _tensor(self, held: Held) -> Array | None:
        values, there = in_tensor(held, *self.session.tensors.raw(held.tensor, self.core))
        return None if there is not None and not there.all() else shown_type(values, held)

    def _assembled(self, held: Held, key: Key, turn: int) -> Array | None:
        caught = self._tiles[key].get(turn, {})
        if not held.pieces or len(caught) != len(held.pieces):
            return None
        values = np.zeros(int(np.prod(held.shape, dtype=np.int64)), numpy_dtype(Dtype.from_numpy_name(held.kept)))
        covered = 0
        for index, piece in enumerate(held.pieces):
            numbers = indices(piece.first, piece.form.rows, piece.form.inner)
            values[numbers] = caught[index]
            covered += numbers.size
        if covered < values.size:
            raise FormatError("pieces do not cover the result", field=key[0], expected=values.size, got=covered)
        return shown_type(values.reshape(held.shape), held)
