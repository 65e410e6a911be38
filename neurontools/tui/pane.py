"""What a pane is: it asks questions, the worker answers them all at one moment, the pane shows the answers.

Panes never touch the session: the worker thread owns it, and the emulator moves while the screen is painted.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, TypeVar, overload, runtime_checkable

from rich.style import Style
from textual.events import MouseDown, MouseMove, MouseUp
from textual.geometry import Region as Part
from textual.message import Message
from textual.strip import Strip
from textual.widget import Widget

from formats.errors import NeuronError
from formats.named_tuple import NamedTuple
from neurontools.tui.contrast import readable

if TYPE_CHECKING:
    from formats.regions import Region
    from neurontools.debugger import Session, State

__all__ = ["Answer", "Command", "Explain", "Pane", "Question", "Selected", "Selection", "Snapshot"]


Answer = TypeVar("Answer")
Answer_co = TypeVar("Answer_co", covariant=True)
Default = TypeVar("Default")


@runtime_checkable
class Question(Protocol[Answer_co]):
    """Something a pane wants to know: a frozen dataclass (a NamedTuple equals any other one with the same values).

    `answer` runs on the worker thread between two completions; it reads and changes nothing. Where a class sets
    `STANDING = True`, its questions are answered only where the device stands still; a run shows the previous answer.
    """

    def answer(self, session: Session) -> Answer_co:
        """Return the answer as a value that shares nothing with the device; NeuronError where there is none."""


class Selection(NamedTuple):
    """What a person has chosen; `reads` and `writes` are the bytes of an instruction.

    `kind` and `value` are "instruction" (core, engine, pc), "bytes" (space, core, first partition, partitions, byte,
    nbytes; of HBM core and partition are 0 and byte is the device address), "tensor" name, "semaphore" (core,
    "semaphore" or "event", number), "queue" (core, name), "line" (file, line), or "" where nothing is chosen.
    """

    kind: str = ""
    value: Any = None
    reads: tuple[Region, ...] = ()
    writes: tuple[Region, ...] = ()


@dataclass(frozen=True)
class Snapshot:
    """The session at one moment: its state, and the answers to what the panes asked.

    An answer that could not be given is the NeuronError that says why. `running` tells that the device is moving,
    `post_mortem` that it is a core dump and cannot; `serial` counts snapshots.
    """

    state: State
    answers: Mapping[Question[object], object]
    serial: int = 0
    running: bool = False
    post_mortem: bool = False

    @overload
    def get(self, question: Question[Answer]) -> Answer | None: ...
    @overload
    def get(self, question: Question[Answer], default: Default) -> Answer | Default: ...
    def get(self, question: Question[Answer], default: object = None) -> object:
        """Return an answer; `default` where it was not asked or could not be given."""
        found = self.answers.get(question, default)
        return default if isinstance(found, NeuronError) else found

    def error(self, question: Question[object]) -> str:
        """Return why a question could not be answered, "" where it was."""
        found = self.answers.get(question)
        return str(found) if isinstance(found, NeuronError) else ""


class Selected(Message):
    """Something was chosen in a pane; see `Selection` for kinds and values."""

    def __init__(self, kind: str, value: Any) -> None:
        self.kind, self.value = kind, value
        super().__init__()


class Command(Message):
    """A line of the debugger's language to run, as if it had been typed; a `quiet` one shows in the panes alone."""

    def __init__(self, text: str, quiet: bool = False) -> None:
        self.text, self.quiet = text, quiet
        super().__init__()


class Explain(Message):
    """A request for a window with all that is known of an instruction."""

    def __init__(self, core: int, engine: str, pc: int) -> None:
        self.place = core, engine, pc
        super().__init__()


class Pane(Widget, can_focus=True):
    """One pane. `TITLE` stands in its border, `TWIN` is the command line that gives the same as JSON.

    For a pane that scrolls by itself: `class Listing(Pane, ScrollView)`.
    """

    TITLE: ClassVar[str] = ""
    TWIN: ClassVar[str] = ""
    MOST: ClassVar[int] = 1000  # lines that it takes where it asks for a number of them
    WEIGHT: ClassVar[float] = 1.0  # its share of what is left where it does not

    class Dragged(Message):
        """The line with the pane's title was moved with the mouse: the pane above is to be so high."""

        def __init__(self, pane: Pane, by: int) -> None:
            self.pane, self.by = pane, by
            super().__init__()

    class Asks(Message):
        """What a pane wants to know has changed (scrolled, zoomed, resized): the app collects questions again."""

    wanted: int | None = None  # lines that it would fill; None for as many as there are
    high = 0  # what it has
    given = 0  # height that a person gave it with the mouse
    painting = False  # whether lines are asked for to be painted, not to be found under the mouse
    _plain: Style | None = None
    _painted: tuple[Part, list[Strip]] | None = None  # the part of the pane, and its lines
    _held: int | None = None  # the line of the screen at which the mouse holds the title

    @property
    def plain(self) -> Style:
        """Return the style of plain text in the pane; Textual computes it whenever it is asked."""
        if self._plain is None:
            self._plain = readable(self.rich_style)
        return self._plain

    def notify_style_update(self) -> None:
        """Forget the style when colours change."""
        super().notify_style_update()
        self._plain = None

    def render_lines(self, crop: Part) -> list[Strip]:
        """Return the lines painted last while nothing has changed.

        At each change of one pane Textual asks all of them for all lines, and works out colours and titles again, which
        took a quarter of what the screen costs a program that runs.
        """
        # Textual forgets its lines where all may have changed, and names those of which it knows; that is its own
        # matter, so a version without these names paints everything again, as Textual alone does.
        cache = getattr(self, "_styles_cache", None)
        changed = getattr(cache, "_dirty_lines", True) or not getattr(cache, "_cache", None)
        if changed or self._painted is None or self._painted[0] != crop:
            self.painting = True
            self._painted = crop, super().render_lines(crop)
            self.painting = False
        return self._painted[1]

    def on_mount(self) -> None:
        """Write the title into the border."""
        self.border_title = self.TITLE

    def questions(self) -> tuple[Question[object], ...]:
        """Return what the pane needs to know for its present size, scroll and zoom; called for visible panes only."""
        return ()

    def show(self, snapshot: Snapshot) -> None:
        """Take over a snapshot, on the UI thread; refresh only what changed. Own questions may still be unanswered."""

    def choose(self, selection: Selection) -> None:
        """Note what is chosen in any pane, with the bytes it reads and writes."""

    def on_mouse_down(self, event: MouseDown) -> None:
        """Take hold of the line with the title."""
        if event.y == 0 and event.get_content_offset(self) is None:
            self._held = int(event.screen_y)
            self.capture_mouse()
            event.stop()

    def on_mouse_move(self, event: MouseMove) -> None:
        """Move the line with the title."""
        if self._held is not None and int(event.screen_y) != self._held:
            self.post_message(self.Dragged(self, int(event.screen_y) - self._held))
            self._held = int(event.screen_y)

    def on_mouse_up(self, event: MouseUp) -> None:
        """Let go."""
        if self._held is not None:
            self._held = None
            self.release_mouse()

    def ask(self) -> None:
        """Have `questions` collected again and answered soon; call it when they changed."""
        self.post_message(self.Asks())
