"""The dashboard on the screen: cores, CPUs, memory, a tree that opens, a tab for each program. runtime.md 13.2."""

from __future__ import annotations

import os
from typing import Any, ClassVar

from rich.text import Text
from textual.app import App, ComposeResult
from textual.binding import Binding, BindingType
from textual.widgets import Static, Tree
from textual.widgets.tree import TreeNode

from formats.errors import NeuronError
from neurontools.command.errors_to_exit import classify
from neurontools.text.table import bytes_text
from neurontools.text.visible import visible
from neurontools.top.figures import ALL, Branch, Figures, figures
from neurontools.top.lines import core_lines, memory_lines, tab_line, title_line, vcpu_lines
from neurontools.top.source import Live, Recorded

__all__ = ["TopApp"]

_TERMINAL_SECONDS = 2.0  # between two looks whether the terminal is still there
_CORE_ROWS = 4  # of the screen's height, one part of so many is for the cores


class TopApp(App[None]):
    """One dashboard over one source of reports."""

    CSS = """
    Screen { layout: vertical; }
    #title { text-style: bold; height: 1; }
    #cores { height: auto; }
    #vcpu { height: auto; background: $boost; }
    #memory { height: auto; }
    #details { height: 1fr; min-height: 3; background: $boost; }
    #tabs { height: 1; background: $panel; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("q", "quit", "quit"),
        Binding("f", "flops", "percent or teraflops"),
        Binding("x", "expand", "open or close the tree"),
        Binding("a", "tab(-1)", "previous tab"),
        Binding("d", "tab(1)", "next tab"),
        Binding("comma", "step(-1)", "previous report"),
        Binding("full_stop", "step(1)", "next report"),
        *(Binding(str(number), f"choose({number})", show=False) for number in range(1, 10)),
    ]

    def __init__(self, source: Live | Recorded, period: float = 1.0) -> None:
        super().__init__()
        self.source, self.period = source, period
        self.flops = False
        self.tab = ALL
        self.report: dict[str, Any] = source.report()
        self._trouble = ""  # why there is no newer report
        self._open: set[str] = set()
        self._rows: list[Branch] = []

    def compose(self) -> ComposeResult:
        yield Static(id="title", markup=False)
        yield Static(id="cores", markup=False)
        yield Static(id="vcpu", markup=False)
        yield Static(id="memory", markup=False)
        yield Tree("Memory Usage Details", id="details")
        yield Static(id="tabs", markup=False)

    def on_mount(self) -> None:
        """Show the first report, and look again every period."""
        self.details.show_root = True
        self.details.root.expand()
        self.details.focus()
        self.show()
        if not self.source.recorded:
            self.set_interval(self.period, self.refresh_report)
        # Not by its parent: in a container process 1 may have started it.
        if not self.is_headless and os.isatty(0):
            self.set_interval(_TERMINAL_SECONDS, self._leave_with_the_terminal)

    def _leave_with_the_terminal(self) -> None:
        """Exit when the terminal is gone and no signal said so: reading from it would spin forever."""
        if not os.isatty(0):
            self.exit()

    @property
    def details(self) -> Tree[str]:
        """Return the tree."""
        found: Tree[str] = self.query_one("#details", Tree)
        return found

    def refresh_report(self) -> None:
        """Take another report, and show it; where there is none, the last one goes on being shown, and why."""
        try:
            self.report, self._trouble = self.source.report(), ""
        except (NeuronError, OSError) as error:  # sessions come and go, and whoever writes them may be killed
            self._trouble = f"  {classify(error).message}"
        self.show()

    def show(self) -> None:
        """Show the report as the chosen tab has it."""
        found = figures(self.report, self.tab)
        self.tab = found.tab
        width, height = self.size
        extra = f"  report {self.source.number} of {self.source.count}" if self.source.recorded else ""
        self._put("title", title_line(found, extra + self._trouble))
        self._put("cores", *core_lines(found, width, self.flops, max(3, height // _CORE_ROWS)))
        self._put("vcpu", *vcpu_lines(found))
        self._put("memory", *memory_lines(found))
        self._put("tabs", tab_line(found))
        self._grow(found)

    def _put(self, name: str, *lines: str) -> None:
        self.query_one(f"#{name}", Static).update(Text("\n".join(map(visible, lines))))

    def _grow(self, found: Figures) -> None:
        """Fill the tree; what was open stays open."""
        if found.tree == self._rows:
            return
        self._rows = found.tree
        self._open = {str(node.data) for node in self._branches() if node.is_expanded and node.data}
        root = self.details.root
        root.remove_children()
        way: list[TreeNode[str]] = [root]
        names: list[str] = []
        for at, one in enumerate(found.tree):
            way, names = way[: one.level + 1], names[: one.level]
            model = "" if one.model_id is None else f"  {one.model_id}"
            label = Text(visible(f"{one.label}{model}  host {bytes_text(one.host)}  device {bytes_text(one.device)}"))
            names.append(f"{one.label}{model}")
            key = "/".join(names)
            leaf = at + 1 == len(found.tree) or found.tree[at + 1].level <= one.level
            node = way[-1].add(label, key, expand=key in self._open, allow_expand=not leaf)
            way.append(node)

    def _branches(self) -> list[TreeNode[str]]:
        found: list[TreeNode[str]] = []
        todo = list(self.details.root.children)
        while todo:
            node = todo.pop()
            found.append(node)
            todo += node.children
        return found

    def on_resize(self) -> None:
        """Lay the cores out for another width."""
        if self.query("#title"):
            self.show()

    def action_flops(self) -> None:
        """Show teraflops instead of percent, or percent again."""
        self.flops = not self.flops
        self.show()

    def action_expand(self) -> None:
        """Open the whole tree, or close it where everything is open."""
        nodes = [node for node in self._branches() if node.allow_expand]
        opened = all(node.is_expanded for node in nodes)
        for node in nodes:
            node.collapse() if opened else node.expand()

    def action_tab(self, by: int) -> None:
        """Go to the tab beside this one."""
        tabs = figures(self.report).tabs
        self.tab = tabs[(tabs.index(self.tab) + by) % len(tabs)]
        self.show()

    def action_choose(self, number: int) -> None:
        """Go to a tab by its number."""
        tabs = figures(self.report).tabs
        if number <= len(tabs):
            self.tab = tabs[number - 1]
            self.show()

    def action_step(self, by: int) -> None:
        """Show another report of a recording."""
        if self.source.recorded:
            self.source.step(by)
            self.refresh_report()
