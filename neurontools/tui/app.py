"""The screen: panes around one session."""

from __future__ import annotations

import os
import signal
from asyncio import get_running_loop
from collections.abc import Iterable, Mapping
from contextlib import suppress
from importlib import import_module
from threading import current_thread, main_thread
from time import thread_time
from typing import TYPE_CHECKING, ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Container
from textual.events import DescendantFocus, Resize
from textual.message import Message

from formats.errors import NeuronError
from neurontools.command.exits import ExitStatus
from neurontools.debugger.commands.carry_out import takes_block
from neurontools.tui import settings
from neurontools.tui.acting import Acting
from neurontools.tui.actions import ACTIONS
from neurontools.tui.carry_out import Done
from neurontools.tui.column import Column
from neurontools.tui.command_line import CommandLine, Completing, Typed
from neurontools.tui.details import DetailsScreen
from neurontools.tui.labels import label
from neurontools.tui.layout import LEFT, NARROW, RIGHT, TABS, WITH_RANKS, Wish, heights, panes_of
from neurontools.tui.output import OutputPane
from neurontools.tui.pane import Command, Explain, Pane, Question, Selected, Selection, Snapshot
from neurontools.tui.panes import LogPane
from neurontools.tui.panes.reports import lines_of
from neurontools.tui.questions import Details, DetailsAnswer, Findings, Touched, Verdict
from neurontools.tui.status import StatusLine, TabLine
from neurontools.tui.worker import Answered, Completed, Crashed, Finished, Fresh, Said, Worker

if TYPE_CHECKING:
    from formats.regions import Region
    from neurontools.debugger import Session

__all__ = ["TABS", "TERMINATED", "DebuggerApp"]

# 128 and the number of the signal, as a shell has it.
TERMINATED = 143  # what `run` returns after SIGTERM
_MOVES = "c runs to the first fault, s steps, S goes back; "
_NEWCOMER = "? lists keys and signs, : takes a command, q leaves"
_HINT_SECONDS = 8.0

_TAKING = ("prompt", "jump")
_MOVING = ": command   s step  n next line  c continue  S N C back  ? help  ctrl+p everything"
_TERMINAL_SECONDS = 2.0  # how often to look whether the terminal is still there
_STANDING = ": command   f jump to a pane  / search  z zoom  ? help  ctrl+p everything"


class _Said(Message):
    """Carries what the worker says to the UI thread."""

    def __init__(self, item: Said) -> None:
        self.item = item
        super().__init__()


class DebuggerApp(Acting):
    """The debugger's screen on one session; `run` returns the exit status."""

    CSS_PATH = "app.tcss"
    TITLE = "neurontools debug"
    BINDINGS: ClassVar[list[BindingType]] = [
        # What takes the keyboard must have it before the next key comes.
        *(Binding(a.keys, a.call, a.summary, id=a.name, show=False, priority=a.call.startswith(_TAKING))
          for a in ACTIONS),
        *(Binding(str(n + 1), f"tab({n})", f"tab {name}", id=f"tab-{name.lower()}", show=False)
          for n, name in enumerate(TABS)),
        # Only while something runs: else it copies what is selected, as ever.
        Binding("ctrl+c", "interrupt", "stop what runs", id="interrupt", show=False, priority=True),
    ]  # fmt: skip

    def __init__(self, session: Session, file: str = "", *, notes: Iterable[str] = (),
                 keymap: Mapping[str, str] | None = None, newcomer: bool = False) -> None:  # fmt: skip
        super().__init__()
        self._keys_given = dict(keymap or {})
        self.worker = Worker(session, self._say)
        self.post_mortem = session.post_mortem
        self.writing = session.writing
        self.snapshot: Snapshot | None = None
        self.selection = Selection()
        self._notes = tuple(notes)
        self._newcomer = newcomer
        self._cores = len(session.device.cores)
        self._ranks = 0 if session.among is None else len(session.among.sessions)
        self._left = WITH_RANKS if self._ranks else LEFT
        self._layout = settings.load_layout()
        self._tab = self._layout.tab if self._layout.tab in TABS else next(iter(TABS))
        self._zoomed = ""
        self.status_line = StatusLine(file, 0 if session.among is None else len(session.among.rows()))
        self.tab_line = TabLine(tuple(TABS))
        self.command_line = CommandLine(_STANDING if self.post_mortem else _MOVING)
        self._panes: dict[str, Pane] = {}
        self._collecting = False
        self._cpu = 0.0
        self._last = ""
        self._searched = ""
        self._last_pane: Pane | None = None
        self._block: list[str] = []  # the lines of `commands` so far
        self._open = 0  # how many blocks of them want an `end`
        self.output = OutputPane(id="output")

    # --- building ----------------------------------------------------------------------------------------------------

    def compose(self) -> ComposeResult:
        """Make every pane once; tabs and sizes only show and hide them."""
        yield self.status_line
        yield self.tab_line
        with Container(id="body"):
            for side, panes in (("left", self._left), ("right", RIGHT)):
                with Column(id=side):
                    for name, module, kind in panes:
                        self._panes[name] = getattr(import_module(module), kind)(id=name)
                        yield self._panes[name]
        yield self.command_line
        yield self.output

    def on_mount(self) -> None:
        """Begin."""
        if self._keys_given:
            self.set_keymap(self._keys_given)
        self.theme = settings.first_theme(self._layout.theme, self.console.color_system, self.available_themes)
        self._arrange()
        self._panes["engines"].focus()
        for text in self._notes:
            self.log_pane.note(((text, "warm"),))
        self.worker.start()
        self._collect()
        if self._newcomer:
            self.notify(("" if self.post_mortem else _MOVES) + _NEWCOMER, timeout=_HINT_SECONDS)
        if not self.is_headless and hasattr(signal, "SIGTERM") and current_thread() is main_thread():
            with suppress(NotImplementedError):  # an event loop without signals
                get_running_loop().add_signal_handler(signal.SIGTERM, self.exit, TERMINATED)
        self.app_resume_signal.subscribe(self, self._repaint_all)
        if not self.is_headless and os.isatty(0):
            self.set_interval(_TERMINAL_SECONDS, self._leave_with_the_terminal)

    def _repaint_all(self, _: object) -> None:
        """Paint everything: a terminal that belonged to a shell meanwhile shows nothing of ours."""
        for widget in self.screen.walk_children():
            widget.refresh()
        self.screen.refresh(layout=True)

    def _leave_with_the_terminal(self) -> None:
        """Exit when the terminal is gone and no signal said so: reading from it would spin forever."""
        if not os.isatty(0):
            self.exit(return_code=int(ExitStatus.INTERRUPTED))

    def on_unmount(self) -> None:
        """End the worker, and remember the layout and the history."""
        self.worker.stop()
        if self.writing.read_only:
            return
        self.command_line.save_history()
        settings.save_layout(self._layout._replace(tab=self._tab))

    @property
    def log_pane(self) -> LogPane:
        log = self._panes["log"]
        assert isinstance(log, LogPane)
        return log

    @property
    def narrow(self) -> bool:
        """Return whether the terminal is too small for all panes at once."""
        return self.size.width < NARROW[0] or self.size.height < NARROW[1]

    def on_resize(self, event: Resize) -> None:
        """Switch to tabs, or back."""
        self.call_after_refresh(self._arrange)

    def _arrange(self) -> None:
        """Show the panes that the size, the tab and the zoom leave."""
        narrow = self.narrow
        shown = {self._zoomed} if self._zoomed else set(panes_of(self._tab)) if narrow else set(self._panes)
        for name, pane in self._panes.items():
            pane.display = name in shown
        for side, panes in (("#left", self._left), ("#right", RIGHT)):
            self.query_one(side).display = any(name in shown for name, _, _ in panes)
        single = narrow or bool(self._zoomed)
        self.query_one("#body").set_class(single, "-tabs")
        self.query_one("#left").styles.width = "100%" if single else f"{self._layout.left}%"
        self._adapt()
        tabs = self.tab_line
        tabs.display = narrow
        tabs.choose(list(TABS).index(self._tab))
        if self.focused is None or (isinstance(self.focused, Pane) and not self.focused.display):
            self.action_focus_panes()
        self.call_after_refresh(self._collect)

    def _adapt(self) -> None:
        """Give every pane the height that it asks for; those that take what is left share it."""
        single = self.narrow or bool(self._zoomed)
        room = self.size.height - 2 - int(self.narrow)
        columns = [(*self._left, *RIGHT)] if single else [self._left, RIGHT]
        for column in columns:
            shown = [self._panes[name] for name, _, _ in column if self._panes[name].display]
            wishes = [Wish(pane.wanted, pane.WEIGHT, pane.MOST, pane.given) for pane in shown]
            for pane, height in zip(shown, heights(wishes, room), strict=True):
                if pane.high != height:
                    pane.high = height
                    pane.styles.height = height

    # --- the worker --------------------------------------------------------------------------------------------------

    def _say(self, item: Said) -> None:
        self.post_message(_Said(item))

    def on__said(self, message: _Said) -> None:
        """Take what the worker says."""
        item = message.item
        if isinstance(item, Fresh):
            self._show()
        elif isinstance(item, Finished):
            done = item.done
            if self._newcomer:  # has begun
                self._newcomer = False
                self.clear_notifications()
            self.log_pane.add(done)
            self._say_over(done)
            status = self.status_line
            if done.reason:
                status.reason = {"step": "stopped", "line": "stopped", "until": "stopped"}.get(done.reason, done.reason)
            if done.error and "log" not in {pane.id for pane in self.visible_panes}:
                self.notify(done.error, severity="error")
            if done.name == "quit":
                self.exit(0)
        elif isinstance(item, Completed):
            choices = self.command_line.completed(item.line, item.words)
            if choices:
                self._note(choices)
        elif isinstance(item, Answered):
            item.receive(item.answer)
        elif isinstance(item, Crashed):
            raise item.error

    def _say_over(self, done: Done) -> None:
        """Show what a command said where the log is hidden: over the panes, until Escape or the next command."""
        hidden = "log" not in {pane.id for pane in self.visible_panes}
        if hidden and done.lines and not done.reason and not done.quiet:
            self.output.open(done.text, lines_of(done))
        elif not done.quiet:
            self.output.display = False

    def _note(self, text: str) -> None:
        """Say something of the screen's own, where it is seen."""
        self.log_pane.note(((text, "dim"),))
        if "log" not in {pane.id for pane in self.visible_panes}:
            self.output.open("", [((text, ""),)])

    def _show(self) -> None:
        """Show the newest snapshot in every visible pane."""
        now = thread_time()
        snapshot = self.worker.take(now - self._cpu)
        self._cpu = now
        if snapshot is None:
            return
        self.snapshot = snapshot
        status = self.status_line
        status.rate = self.worker.rate
        status.findings = len(snapshot.get(Findings(), ()))
        status.show(snapshot)
        self._prompt()
        for pane in self.visible_panes:
            pane.show(snapshot)
        if not snapshot.running:
            self._adapt()

    def _prompt(self) -> None:
        """Show which core and engine commands mean, or that a block waits for its end."""
        if self._block:
            self.command_line.set_prompt("end closes › ")
        elif self.snapshot is not None:
            state = self.snapshot.state
            core, engine = state.focus
            rank = f"rank {state.rank} " if self._ranks else ""
            self.command_line.set_prompt(f"({rank}nc{core} {label(engine).lower()}) › ")

    def _collect(self) -> None:
        """Hand the questions of the visible panes to the worker."""
        self._collecting = False
        questions: list[Question[object]] = [
            Findings(),
            Verdict(),
            *(each for pane in self.visible_panes for each in pane.questions()),
        ]
        self.worker.ask(tuple(dict.fromkeys(questions)))

    def on_explain(self, message: Explain) -> None:
        """Open the window with what is known of an instruction."""
        message.stop()

        def found(answer: DetailsAnswer | NeuronError) -> None:
            if isinstance(answer, NeuronError):
                self.notify(str(answer), severity="error")
            else:
                self.push_screen(DetailsScreen(answer))

        self.worker.answer_once(Details(*message.place), found)

    def on_pane_dragged(self, message: Pane.Dragged) -> None:
        """Give the pane above another height."""
        message.stop()
        for column in (self._left, RIGHT):
            shown = [self._panes[name] for name, _, _ in column if self._panes[name].display]
            if message.pane in shown[1:]:
                above = shown[shown.index(message.pane) - 1]
                above.given = max(above.high + message.by, 1)
                self._adapt()

    def on_column_dragged(self, message: Column.Dragged) -> None:
        """Move the division between the columns."""
        message.stop()
        left = max(20, min(80, round(message.column * 100 / max(self.size.width, 1))))
        self._layout = self._layout._replace(left=left)
        self._arrange()

    def on_pane_asks(self, message: Pane.Asks) -> None:
        """Collect questions once for all panes that ask at the same time."""
        message.stop()
        if not self._collecting:
            self._collecting = True
            self.call_later(self._collect)

    def on_descendant_focus(self, event: DescendantFocus) -> None:
        """Remember which pane had the keyboard."""
        if isinstance(event.widget, Pane) and event.widget is not self.output:
            self._last_pane = event.widget

    # --- what panes and the command line say -------------------------------------------------------------------------

    def on_selected(self, message: Selected) -> None:
        """Tell every pane what is chosen; for an instruction, find out first what it reads and writes."""
        message.stop()
        chosen = Selection(message.kind, message.value)
        if message.kind == "instruction":
            core, engine, pc = message.value

            def found(answer: tuple[tuple[Region, ...], tuple[Region, ...]] | NeuronError) -> None:
                if isinstance(answer, NeuronError):
                    self.log_pane.note(((str(answer), "bad"),))
                    self._choose(chosen)
                else:
                    self._choose(chosen._replace(reads=answer[0], writes=answer[1]))

            self.worker.answer_once(Touched(core, engine, pc), found)
        else:
            self._choose(chosen)

    def _choose(self, selection: Selection) -> None:
        self.selection = selection
        for pane in self._panes.values():
            pane.choose(selection)
        if self.snapshot is not None:
            for pane in self.visible_panes:
                pane.show(self.snapshot)

    def on_command(self, message: Command) -> None:
        """Run what a pane asks for."""
        message.stop()
        self.worker.carry_out(message.text, message.quiet)

    def on_typed(self, message: Typed) -> None:
        """Run a typed line; an empty one repeats the last, one that begins with / searches."""
        message.stop()
        text = message.text or self._last
        if self._block:
            self._block.append(text)
            self._open += takes_block(text) - (text == "end")
            if not self._open:
                self.worker.carry_out("\n".join(self._block))
                self._block = []
        elif text.startswith("/"):
            self._search(text[1:] or self._searched)
            self.action_focus_panes()
        elif takes_block(text):
            self._block, self._open = [text], 1
            self._note(f"lines of {text.split()[0]}, one a line; end closes them, Escape drops them")
            self._prompt()
        elif text:
            self._last = text if self.worker.repeats(text) else ""
            self.worker.carry_out(text)

    def on_completing(self, message: Completing) -> None:
        """Ask the session what a word may become."""
        message.stop()
        self.worker.complete(message.line)

    def on_status_line_back(self, message: StatusLine.Back) -> None:
        """Give the keyboard back where jump mode has ended without a choice."""
        message.stop()
        self.action_focus_panes()

    def on_tab_line_chosen(self, message: TabLine.Chosen) -> None:
        """Open the tab that was clicked."""
        self.action_tab(message.number)
