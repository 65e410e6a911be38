"""Which variables of a function may have changed from one of its calls to the next, as its code alone tells.

To read all variables of a frame takes longer than to note an operation, and hardly any changes between two calls: only
what is stored on a way from one to the other can. Code only moves on, but for its jumps back, so that all ways lie
between the lowest place that can be reached and the highest that leads to the end.
"""

from __future__ import annotations

import inspect
import re
from opcode import EXTENDED_ARG, opmap
from types import CodeType, FrameType

from formats.neff.visits import Site
from neurontools.nki.syntax import loops_of

__all__ = ["Flow", "Step", "flow_of"]

# From one call of a function to the next: its site, which variables may be others, None for any, and the line.
Step = tuple[Site, tuple[str, ...] | None, tuple[str, int]]


def _any_of(*parts: str) -> re.Pattern[bytes]:
    """Return what finds the operations whose names have one of these parts."""
    found = (code for name, code in opmap.items() if code < 256 and any(part in name for part in parts))
    return re.compile(b"[%b]" % re.escape(bytes(found)), re.DOTALL)


_STORES = _any_of("STORE_FAST", "DELETE_FAST", "FAST_AND_CLEAR", "STORE_DEREF", "DELETE_DEREF")
_STORES_OF_CELLS = _any_of("STORE_DEREF", "DELETE_DEREF")
_JUMPS_BACK = _any_of("JUMP_BACKWARD")
# Those that hold two variables, one in each half of their argument.
_TWO = frozenset(code for name, code in opmap.items() if name.count("_FAST") > 1 and "AND_CLEAR" not in name)


class Flow:
    """What a function's code tells of its variables and places; the code is kept, as it is found by its number."""

    __slots__ = ("_always", "_back", "_is_open", "_sites", "_stores", "code", "steps")

    def __init__(self, code: CodeType) -> None:
        self.code = code
        self._sites: dict[int, Site] = {}
        self.steps: dict[tuple[int, int], Step] = {}  # those that were asked for, by the instructions of both calls
        self._stores: list[tuple[int, str]] | None = None  # place and variable; made when somebody asks
        self._back: list[tuple[int, int]] = []  # jumps back: the place behind, and that in front
        self._always: tuple[str, ...] = ()
        self._is_open = False

    def step(self, key: tuple[int, int], frame: FrameType) -> Step:
        """Return what is known of the way from one instruction, -1 for the start, to another, at which the frame is."""
        found = self.steps.get(key)
        if found is None:
            before, at = key
            site = self._site(at, frame)
            names = None if before < 0 else self.changed(before, at)
            found = self.steps[key] = site, names, (site.file, site.line)
        return found

    def _site(self, at: int, frame: FrameType) -> Site:
        found = self._sites.get(at)
        if found is None:
            code, line = self.code, frame.f_lineno
            found = self._sites[at] = Site(code.co_filename, code.co_name, line, loops_of(code, line))
        return found

    def changed(self, before: int, now: int) -> tuple[str, ...] | None:
        """Return the variables that may be others at one call than at the one before; None where any may be.

        Many are not worth looking at one by one, which is "any", too.
        """
        if self._stores is None:
            self._stores = self._read()
        if self._is_open:
            return None
        lowest, highest = before, now
        if self.code.co_exceptiontable:  # an exception goes on anywhere
            lowest, highest = 0, len(self.code.co_code)
        more = True
        while more:
            more = False
            for start, end in self._back:
                if end >= lowest and start < lowest:
                    lowest, more = start, True
                if start <= highest and end > highest:
                    highest, more = end, True
        if lowest > highest:
            return None
        stored = (name for place, name in self._stores if lowest <= place <= highest)
        found = tuple(dict.fromkeys((*self._always, *stored)))
        return found if len(found) <= max(_FEW, len(self.code.co_varnames) // 2) else None

    def _read(self) -> list[tuple[int, str]]:
        """Return where which variable is stored; note jumps back, and what others may store."""
        code = self.code
        names = [*code.co_varnames, *(name for name in code.co_cellvars if name not in code.co_varnames),
                 *code.co_freevars]  # fmt: skip
        raw = code.co_code
        operations, arguments = raw[::2], raw[1::2]
        stores: list[tuple[int, str]] = []
        # Names of a class or of text that is carried out are no variables of a frame.
        self._is_open = not code.co_flags & inspect.CO_OPTIMIZED
        for found in _STORES.finditer(operations):
            place = found.start()
            number = _argument(operations, arguments, place)
            numbers = (number >> 4, number & 15) if operations[place] in _TWO else (number,)
            for one in numbers:
                if one >= len(names):
                    self._is_open = True
                    continue
                stores.append((2 * place, names[one]))
        for found in _JUMPS_BACK.finditer(operations):
            end = found.start()
            # without what some versions keep behind the jump, which only puts the place further in front
            self._back.append((2 * (end + 1 - _argument(operations, arguments, end)), 2 * end))
        self._always = (*code.co_freevars, *(code.co_cellvars if _writes_cells(code) else ()))
        return stores


def _argument(operations: bytes, arguments: bytes, place: int) -> int:
    """Return the argument of an operation, with what stands in front of it for large ones."""
    number, shift = arguments[place], 8
    while place and operations[place - 1] == EXTENDED_ARG:
        place -= 1
        number |= arguments[place] << shift
        shift += 8
    return number


def _writes_cells(code: CodeType) -> bool:
    """Return whether a function inside of another writes variables around it."""
    inside = [one for one in code.co_consts if isinstance(one, CodeType)]
    return any(_STORES_OF_CELLS.search(one.co_code[::2]) is not None or _writes_cells(one) for one in inside)


_FEW = 6  # variables that are looked at one by one in any case, else up to half of them
_MOST = 1 << 10
# By the identity of a code, which is kept with it: its hash would go through all of its constants and names.
_flows: dict[int, Flow] = {}


def flow_of(code: CodeType) -> Flow:
    """Return what is known of a function's code, the same for each call of it."""
    found = _flows.get(id(code))
    if found is None:
        if len(_flows) >= _MOST:
            _flows.clear()
        found = _flows[id(code)] = Flow(code)
    return found
