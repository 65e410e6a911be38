"""What an editor shows of values: scopes of a frame, tensors as trees with their figures."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from formats.errors import NeuronError
from formats.named_tuple import NamedTuple
from neurontools.dap.places import Frame
from neurontools.debugger import Session, UsageError
from neurontools.debugger.memory import spot_of_tensor
from neurontools.debugger.results import Computed, TensorValue, printable
from neurontools.debugger.view_memory import value_lines

__all__ = ["Variables"]

Variable = dict[str, Any]
_SHOWN = 8  # elements of a row that its line shows
_PAGE = 1000  # children at a time where the editor asks for no number
_INDEX = re.compile(r"\[(\d{1,18})\]")


class _Array(NamedTuple):
    """Elements under a name that can be computed again; `figures` are shown above the elements."""

    name: str
    array: Any
    figures: bool


_Content = Callable[[], list[Variable]]


class Variables:
    """References to what has children; they live until the program moves."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._held: list[_Array | _Content] = []

    def forget(self) -> None:
        """Let go of all references."""
        self._held.clear()

    def _hold(self, content: _Array | _Content) -> int:
        self._held.append(content)
        return len(self._held)

    def scopes(self, frame: Frame) -> list[Variable]:
        """Return the scopes of a frame."""
        core, engine = frame.core, frame.engine
        parts: list[tuple[str, str, _Content, bool]] = [
            ("Locals", "locals", lambda: self._locals(frame), False),
            ("Tensors", "", lambda: self._tensors(core), True),
            ("Semaphores", "", lambda: self._semaphores(core), False),
            ("Registers", "registers", lambda: self._registers(core, engine), False),
            ("Engine", "", lambda: self._engine(core, engine), False),
        ]
        return [
            {"name": name, "variablesReference": self._hold(content), "expensive": costly,
             **({"presentationHint": hint} if hint else {})}
            for name, hint, content, costly in parts
        ]  # fmt: skip

    def children(self, reference: int, first: int = 0, count: int = 0, which: str = "") -> list[Variable]:
        """Return the children of a reference: some of the `indexed` or the `named` ones where asked for."""
        if not 0 < reference <= len(self._held):
            raise UsageError(f"no variables {reference}: the program has moved since")
        held = self._held[reference - 1]
        if isinstance(held, _Array):
            held = self._now(held)
            named = self._figures(held) if held.figures and which != "indexed" else []
            rows = [] if which == "named" else self._rows(held, first, count)
            return [*named, *rows]
        found = held()
        return [] if which == "indexed" else found[first : first + count] if count else found

    def _now(self, held: _Array) -> _Array:
        """Return elements as they are now, which a person may have set since."""
        try:
            found = self._session.evaluate(held.name) if held.name else None
        except NeuronError:
            found = None
        value: Any = None if found is None else found.array if isinstance(found, TensorValue) else found.value
        return held._replace(array=np.asarray(value)) if np.shape(value) == held.array.shape else held

    def name_of(self, reference: int, name: str) -> str:
        """Return the expression that a child of a reference is."""
        held = self._held[reference - 1] if 0 < reference <= len(self._held) else None
        if isinstance(held, _Array) and held.name and (found := _INDEX.fullmatch(name)):
            return _deeper(held.name, int(found[1]))  # not by way of all its children, which may be a million
        for each in self.children(reference, 0, 1 << 20):
            if each["name"] == name and each.get("evaluateName"):
                return str(each["evaluateName"])
        raise UsageError(f"{name} cannot be set")

    # --- scopes ------------------------------------------------------------------------------------------------------

    def _locals(self, frame: Frame) -> list[Variable]:
        rows = self._of(frame, lambda: self._session.info_locals())
        found = []
        for row in rows:
            if row.level != frame.level:
                continue
            if row.tensor:
                found.append(self._tensor(row.name, str(row.value), frame.core))
            else:
                found.append({"name": row.name, "value": repr(row.value), "type": type(row.value).__name__,
                              "variablesReference": 0})  # fmt: skip
        return found

    def _of(self, frame: Frame, look: Callable[[], Any]) -> Any:
        """Return what a look at the focus gives with the focus on the engine of a frame."""
        before = self._session.focus()
        self._session.focus(frame.core, frame.engine)
        try:
            return look()
        finally:
            self._session.focus(*before)

    def _tensors(self, core: int) -> list[Variable]:
        return [self._tensor(name, name, core) for name in self._session.tensors.names(core)]

    def _tensor(self, name: str, tensor: str, core: int) -> Variable:
        several = len(self._session.device.cores) > 1
        expression = f'nc{core}."{tensor}"' if several else f'"{tensor}"'
        try:
            found = self._session.tensors.value(tensor, core)
            spot = spot_of_tensor(self._session.device, self._session.tensors.find(tensor, core), core, 0)
        except NeuronError as error:
            return {"name": name, "value": str(error), "variablesReference": 0}
        made = self.shown(name, found.array, figures=True, evaluate=expression)
        where = f"hbm:{spot.address:#x}" if spot.space == "HBM" else (
            f"nc{spot.core} {spot.space.lower()}:{spot.partition}:{spot.address:#x}")  # fmt: skip
        # An editor opens memory by what it is given here, as text: as `x` takes it.
        made["memoryReference"] = where
        made["value"] += f" in {found.space}" + (f", {found.unwritten} never written" if found.unwritten else "")
        return made

    def _semaphores(self, core: int) -> list[Variable]:
        rows = [row for row in self._session.info_semaphores() if row.core == core]
        return [
            {"name": (name := f"{'E' if row.kind == 'event' else 'S'}[{row.number}]"), "variablesReference": 0,
             "value": str(row.value) + (f", waited for by {'; '.join(row.waiters)}" if row.waiters else ""),
             "evaluateName": f"nc{core}.{name}"}
            for row in rows
        ]  # fmt: skip

    def _registers(self, core: int, engine: str) -> list[Variable]:
        rows = self._session.info_registers(engine, core, everything=True)
        return [{"name": f"R[{row.number}]", "value": f"{row.value:#x}", "type": "32 bits", "variablesReference": 0,
                 "evaluateName": f"nc{core}.{engine}.R[{row.number}]"} for row in rows]  # fmt: skip

    def _engine(self, core: int, engine: str) -> list[Variable]:
        row = next(one for one in self._session.info_engines() if (one.core, one.engine) == (core, engine))
        facts = {"state": row.state, "pc": row.pc, "words": row.words, "completed": row.completed,
                 "waits for": row.waits_for, "word": row.text}  # fmt: skip
        return [{"name": name, "value": str(value), "variablesReference": 0}
                for name, value in facts.items() if value is not None]  # fmt: skip

    # --- values ------------------------------------------------------------------------------------------------------

    def shown(self, name: str, value: Any, *, figures: bool, evaluate: str = "") -> Variable:
        """Return a value as a variable; an array has children."""
        made: Variable = {"name": name, "variablesReference": 0}
        if evaluate:
            made["evaluateName"] = evaluate
        if isinstance(value, tuple):
            return {**made, "value": str(value), "type": "tuple"}
        if not np.ndim(value):
            lines = list(value_lines(Computed("", value)))
            return {**made, "value": lines[0].removeprefix(" = "), "type": _type_of(value)}
        array = np.asarray(value)
        made |= {"value": _line(array), "type": _type_of(array), "indexedVariables": int(array.shape[0]),
                 "variablesReference": self._hold(_Array(evaluate, array, figures))}  # fmt: skip
        if figures:
            made["namedVariables"] = len(self._figures(_Array("", array, True)))
        return made

    def result(self, found: TensorValue | Computed) -> Variable:
        """Return what an expression is."""
        value = found.array if isinstance(found, TensorValue) else found.value
        if isinstance(found, Computed) and found.base:
            lines = list(value_lines(found))
            return {"value": "\n".join(lines).partition(" = ")[2], "variablesReference": 0}
        return self.shown("", value, figures=True)

    def _figures(self, held: _Array) -> list[Variable]:
        statistics = TensorValue("", "", "", held.array, 0).statistics
        facts = {"shape": list(held.array.shape), "dtype": held.array.dtype.name, "minimum": statistics.minimum,
                 "mean": statistics.mean, "maximum": statistics.maximum, "NaN": statistics.nans,
                 "infinite": statistics.infinities}  # fmt: skip
        return [{"name": name, "value": str(value), "variablesReference": 0, "presentationHint": {"kind": "virtual"}}
                for name, value in facts.items() if value is not None]  # fmt: skip

    def _rows(self, held: _Array, first: int, count: int) -> list[Variable]:
        rows: Sequence[Any] = held.array[first : first + (count or _PAGE)]
        return [self.shown(f"[{first + number}]", row, figures=False,
                           evaluate=_deeper(held.name, first + number)) for number, row in enumerate(rows)]  # fmt: skip


def _deeper(name: str, index: int) -> str:
    if not name:
        return ""
    return f"{name[:-1]}, {index}]" if name.endswith("]") and "[" in name else f"{name}[{index}]"


def _type_of(value: Any) -> str:
    if isinstance(value, np.ndarray | np.generic):
        shape = ", ".join(map(str, np.shape(value)))
        return f"{value.dtype.name}[{shape}]" if shape else value.dtype.name
    return type(value).__name__


def _line(array: Any) -> str:
    shape = ", ".join(map(str, array.shape))
    flat = printable(array.reshape(-1)[:_SHOWN])
    values = ", ".join(f"{one:.6g}" if flat.dtype.kind == "f" else str(one) for one in flat.tolist())
    return f"{array.dtype.name}[{shape}] {values}" + (", …" if array.size > _SHOWN else "")
