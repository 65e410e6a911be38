"""HBM by variables: what each is, where it lies, and how much of it is written."""

from __future__ import annotations

from typing import ClassVar

from textual.binding import Binding, BindingType

from neurontools.debugger.byte_facts import Variable
from neurontools.debugger.view_maps import shade
from neurontools.text.table import bytes_text
from neurontools.tui.lines import LinesPane, Parts
from neurontools.tui.maps.questions import NotNumbers, Variables
from neurontools.tui.pane import Command, Question, Selected, Selection, Snapshot

__all__ = ["HbmVariables"]

_PARTS = 12


class HbmVariables(LinesPane):
    """A line for every allocation, by address."""

    TITLE: ClassVar[str] = "HBM"
    TWIN: ClassVar[str] = "info variables"
    MOST: ClassVar[int] = 8
    HELP: ClassVar[str] = "enter: choose the variable; the bar shows which parts of it are written"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("l", "last_write", "print what wrote the variable last", show=False)
    ]

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self.variables: tuple[Variable, ...] = ()
        self._chosen = ""
        self._core = 0
        self._nans: frozenset[str] = frozenset()

    def questions(self) -> tuple[Question[object], ...]:
        """Ask for all variables, and which of them hold a NaN."""
        return (Variables(_PARTS), NotNumbers("HBM", self._core))

    def show(self, snapshot: Snapshot) -> None:
        """Show them; widths depend on the program only, so that nothing moves."""
        found = snapshot.get(Variables(_PARTS))
        if found is None:
            return
        self.variables = found
        if snapshot.state.focus[0] != self._core:
            self._core = snapshot.state.focus[0]
            self.ask()
        self._nans = snapshot.get(NotNumbers("HBM", self._core), self._nans)
        wide = max((len(item.name) for item in found), default=0)
        types = max((len(_type(item)) for item in found), default=0)
        self.wanted = len(found)
        self.border_title = "HBM" if found else "HBM nothing allocated"
        self.set_lines([self._parts(item, min(wide, 28), min(types, 24)) for item in found])

    def _parts(self, item: Variable, wide: int, types: int) -> Parts:
        name = item.name if len(item.name) <= wide else item.name[: wide - 1] + "…"
        return (
            ("›" if item.name == self._chosen else " ", "mark"),
            (f"{name:<{wide}} ", "name"),
            (f"{item.kind or '-':<9} ", "dim"),
            (f"{_type(item):<{types}} ", "value"),
            (shade(item.strip),
             "good" if item.written == item.nbytes else "warm"),
            (" NaN", "bad") if item.name in self._nans else ("", ""),
            (f" {item.written * 100 // max(item.nbytes, 1):>3}% of {bytes_text(item.nbytes):<10}", ""),
            (f" {item.address:#x}", "dim"),
        )  # fmt: skip

    def choose(self, selection: Selection) -> None:
        """Mark the chosen variable."""
        self._chosen = str(selection.value) if selection.kind == "tensor" else ""

    def enter(self, index: int, column: int | None = None) -> None:
        """Choose a variable, or the bytes of an allocation without a name in the program."""
        if index < len(self.variables):
            item = self.variables[index]
            known = bool(item.kind)
            self.post_message(Selected("tensor", item.name) if known
                              else Selected("bytes", ("HBM", 0, 0, 1, item.address, item.nbytes)))  # fmt: skip

    def action_last_write(self) -> None:
        """Print what wrote last into the variable under the cursor."""
        if self.cursor < len(self.variables):
            item = self.variables[self.cursor]
            self.post_message(Command(f"last-write hbm:{item.address:#x}, {item.nbytes}"))


def _type(item: Variable) -> str:
    return f"{item.dtype}[{', '.join(map(str, item.shape))}]" if item.dtype else "bytes"
