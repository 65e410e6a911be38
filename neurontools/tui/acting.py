"""What the keys do."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from textual.app import App, SystemCommand
from textual.screen import Screen
from textual.widgets import Input

from formats.errors import NeuronError
from neurontools.text.visible import visible_line
from neurontools.tui import settings
from neurontools.tui.actions import ACTIONS
from neurontools.tui.command_line import CommandLine
from neurontools.tui.help import HelpScreen, key_text
from neurontools.tui.layout import RIGHT, TABS, WITH_RANKS, panes_of
from neurontools.tui.output import OutputPane
from neurontools.tui.pane import Pane, Selection, Snapshot
from neurontools.tui.panes import DisassemblyPane, LogPane, SourcePane
from neurontools.tui.panes.ranks import Ranks
from neurontools.tui.questions import Search
from neurontools.tui.status import StatusLine

if TYPE_CHECKING:
    from textual.notifications import SeverityLevel

    from neurontools.debugger.writing import Writing
    from neurontools.tui.worker import Worker

__all__ = ["Acting"]

_SHORT = 2.0  # seconds
_RATES = (0.0, 1000.0, 100.0, 10.0, 1.0)


class Acting(App[int]):
    """The half of the app that acts on keys and on the command palette."""

    worker: Worker
    command_line: CommandLine
    status_line: StatusLine
    output: OutputPane
    _block: list[str]
    _prompt: Callable[[], None]
    post_mortem: bool
    writing: Writing
    snapshot: Snapshot | None
    selection: Selection
    _arrange: Callable[[], None]
    _cores: int
    _ranks: int
    _keys_given: dict[str, str]
    _last_pane: Pane | None
    _layout: settings.Layout
    _panes: dict[str, Pane]
    _searched: str
    _tab: str
    _zoomed: str

    @property
    def panes(self) -> dict[str, Pane]:
        """Return the panes by id, in the order of the screen."""
        return {name: self._panes[name] for name, _, _ in (*WITH_RANKS, *RIGHT) if name in self._panes}

    @property
    def visible_panes(self) -> list[Pane]:
        """Return the panes that are on the screen."""
        return [pane for pane in self.panes.values() if pane.display]

    def notify(self, message: str, *, title: str = "", severity: SeverityLevel = "information",
               timeout: float | None = None, markup: bool = False) -> None:  # fmt: skip
        """Show a message for a while, as it is: names in it come from files, and are no markup."""
        super().notify(visible_line(message), title=title, severity=severity, timeout=timeout, markup=markup)

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Offer nothing that moves in a core dump, no switcher for one core or rank, and leave what is typed alone."""
        taken = isinstance(self.focused, Input | StatusLine)  # the next key is a letter, or of a pane
        if action in ("prompt", "jump") and (taken or len(self.screen_stack) > 1):
            return False
        if action == "interrupt":
            return self.worker.running
        if action == "core":
            return self._cores > 1
        if action == "rank":
            return self._ranks > 1
        if not self.post_mortem:
            return True
        call = f"{action}({', '.join(map(repr, parameters))})" if parameters else action
        return not any(a.live and a.call == call for a in ACTIONS)

    def get_system_commands(self, screen: Screen[Any]) -> Iterable[SystemCommand]:
        """Offer every key's action, and every pane, in the command palette."""
        for action in ACTIONS:
            if not (self.post_mortem and action.live):
                keys = key_text(self._keys_given.get(action.name, action.keys))
                yield SystemCommand(action.name, f"{action.summary} ({keys})", self._caller(action.call))
        for name in self._panes:
            yield SystemCommand(f"pane {name}", "go to this pane", self._caller(f"show_pane('{name}')"))
        for theme in self.available_themes:
            yield SystemCommand(f"theme {theme}", "use these colours", self._caller(f"use_theme('{theme}')"))

    def _caller(self, call: str) -> Callable[[], Awaitable[None]]:
        async def carry_out() -> None:
            await self.run_action(call)

        return carry_out

    def action_line(self, text: str) -> None:
        """Run a command line; while another one takes its time, a key does nothing."""
        if not self.worker.carry_out(text, key=True):
            self.notify("the last command is still running; p stops it", timeout=_SHORT)

    def action_prompt(self, text: str) -> None:
        """Begin a command."""
        self.command_line.open(text)

    def action_pause(self) -> None:
        """Stop what runs."""
        self.worker.pause()

    def action_interrupt(self) -> None:
        """Stop what runs, wherever the keyboard is."""
        self.worker.pause()

    def action_toggle_run(self) -> None:
        """Continue, or stop what runs."""
        if self.worker.running:
            self.worker.pause()
        else:
            self.worker.carry_out("continue")

    def action_rate(self) -> None:
        """Choose the next slower rate."""
        self.worker.rate = _RATES[(_RATES.index(self.worker.rate) + 1) % len(_RATES)]
        self.notify(f"at most {self.worker.rate:g} completions a second" if self.worker.rate else "full speed")

    def action_break(self) -> None:
        """Set or delete the breakpoint under the cursor of the source or the words."""
        pane = self.focused if isinstance(self.focused, SourcePane | DisassemblyPane) else self._panes["disassembly"]
        assert isinstance(pane, SourcePane | DisassemblyPane)
        text = pane.break_command()
        if text:
            self.worker.carry_out(text)
        else:
            self.notify("there is no line under the cursor", severity="warning")

    def action_watch(self) -> None:
        """Watch what is chosen."""
        kind, value = self.selection.kind, self.selection.value
        if kind == "tensor":
            self.worker.carry_out(f'watch "{value}"')
        elif kind == "semaphore":
            core, sort, number = value
            self.worker.carry_out(f"watch nc{core} {'E' if sort == 'event' else 'S'}[{number}]")
        elif kind == "bytes":
            space, core, first, _, byte, nbytes = value
            place = f"hbm:{byte:#x}" if space == "HBM" else f"nc{core} {space.lower()}:{first}:{byte:#x}"
            self.worker.carry_out(f"watch {place}, {nbytes}")
        else:
            self.notify("choose a tensor, bytes or a semaphore first", severity="warning")

    def action_search_again(self) -> None:
        """Search on."""
        if self._searched:
            self._search(self._searched)

    def _search(self, text: str) -> None:
        self._searched = text
        pane = self._last_pane
        if isinstance(pane, SourcePane | LogPane):
            if not pane.find(text):
                self.notify(f"no {text!r} in {pane.TITLE}", severity="warning")
            return
        words = self._panes["disassembly"]
        assert isinstance(words, DisassemblyPane)

        def found(pc: int | NeuronError | None) -> None:
            if isinstance(pc, int):
                words.go_to(pc)
            else:
                self.notify(f"no {text!r} in this engine's words", severity="warning")

        self.worker.answer_once(Search(text, words.pc), found)

    def action_focus_panes(self) -> None:
        """Give the keyboard back to the panes, and drop what lay over them or was not ended."""
        self.output.display = False
        if self._block:
            self._block = []
            self._prompt()
        pane = self._last_pane
        visible = self.visible_panes
        if pane is not None and pane.display:
            self.screen.set_focus(pane)
        elif visible:
            self.screen.set_focus(visible[0])

    def action_focus_pane(self, by: int) -> None:
        """Go to the next pane, or the one before."""
        visible = self.visible_panes
        if visible:
            at = visible.index(self._last_pane) if self._last_pane in visible else -by
            visible[(at + by) % len(visible)].focus()

    def action_show_pane(self, name: str) -> None:
        """Go to a pane, on whatever tab it is."""
        if not self._panes[name].display:
            self._zoomed = ""
            self._tab = next(tab for tab in TABS if name in panes_of(tab))
            self._arrange()
        self._panes[name].focus()

    def action_jump(self) -> None:
        """Show a letter on every pane, and go to the one whose letter is pressed."""
        self.status_line.jump(self.visible_panes)

    def action_tab(self, number: int) -> None:
        """Open a tab; on a large terminal, go to its first pane."""
        name = list(TABS)[number]
        self._tab, self._zoomed = name, ""
        self._arrange()
        first = next(pane for pane in TABS[name] if pane in self._panes)
        self._panes[first].focus()

    def action_core(self, by: int) -> None:
        """Look at another core."""
        if self.snapshot is not None:
            self.worker.carry_out(f"focus nc{(self.snapshot.state.focus[0] + by) % self._cores}")

    def action_rank(self, by: int) -> None:
        """Look at another rank that runs a program."""
        rows = () if self.snapshot is None else self.snapshot.get(Ranks(), ())
        here = [row.rank for row in rows if row.outcome != "absent"]
        now = next((row.rank for row in rows if row.selected), None)
        if now in here:
            self.worker.carry_out(f"rank {here[(here.index(now) + by) % len(here)]}", quiet=True)

    def action_zoom(self) -> None:
        """Give one pane the whole screen, or take it back."""
        pane = self._last_pane
        self._zoomed = "" if self._zoomed or pane is None else pane.id or ""
        self._arrange()

    def action_split(self, by: int) -> None:
        """Move the division between the columns."""
        self._layout = self._layout._replace(left=max(20, min(80, self._layout.left + by)))
        self._arrange()

    def action_theme(self) -> None:
        """Go from dark to light, or back."""
        self.action_use_theme(settings.other_theme(self.theme))

    def action_use_theme(self, name: str) -> None:
        """Use a theme, also the next time."""
        self.theme = name
        self._layout = self._layout._replace(theme=name)

    def action_export(self) -> None:
        """Save the screen as text and as SVG in the current folder."""
        from neurontools.tui.export import save_screen  # deferred: start-up

        try:
            self.writing.refuse()
            paths = save_screen(self, Path.cwd())
        except NeuronError as error:
            self.notify(str(error), severity="error")
        except OSError as error:
            self.notify(f"{error.filename}: {(error.strerror or 'cannot be written').lower()}", severity="error")
        else:
            self.notify(f"saved {paths[0].name} and {paths[1].name}")

    def action_help(self) -> None:
        """Show the keys."""
        pane = self._last_pane
        self.push_screen(HelpScreen(self.active_keys(), list(self._panes.values()), pane, self.post_mortem))

    def active_keys(self) -> dict[str, str]:
        """Return the keys of every action by name, as the keymap file left them."""
        return {a.name: self._keys_given.get(a.name, a.keys) for a in ACTIONS}

    def action_leave(self) -> None:
        """Leave."""
        self.exit(0)
