"""The screen's keys: one table gives bindings, help, command palette and the names in the keymap file."""

from __future__ import annotations

from formats.named_tuple import NamedTuple

__all__ = ["ACTIONS", "Action"]


class Action(NamedTuple):
    """One thing a key does: `name` as the keymap file has it; `live` ones need a program that runs."""

    name: str
    keys: str
    call: str
    summary: str
    group: str
    live: bool = False


ACTIONS = (
    Action("step", "s", "line('step')", "complete the next instruction or transfer", "go", True),
    Action("step-engine", "i", "line('stepi')", "run until the focus engine completes one", "go", True),
    Action("next-line", "n", "line('next')", "run until the focus engine leaves its line", "go", True),
    Action("continue", "c", "line('continue')", "run to a breakpoint, a fault or the end", "go", True),
    Action("reverse-step", "S", "line('reverse-step')", "take back the last completion", "go back", True),
    Action(
        "reverse-step-engine", "I", "line('reverse-stepi')", "take back the focus engine's last one", "go back", True
    ),
    Action("reverse-next-line", "N", "line('reverse-next')", "go back to the previous line", "go back", True),
    Action(
        "reverse-continue",
        "C",
        "line('reverse-continue')",
        "go back to the previous stop, or the start",
        "go back",
        True,
    ),
    Action("goto", "g", "prompt('goto ')", "go to a time, #event, mark, start or end", "go", True),
    Action("pause", "p", "pause", "stop what runs", "go", True),
    Action("run-or-pause", "space", "toggle_run", "continue, or stop what runs", "go", True),
    Action("rate", "r", "rate", "run slower: 1000, 100, 10, 1 completions a second, full speed", "go", True),
    Action("break", "b", "break", "set or delete the breakpoint at the cursor", "stops", True),
    Action("watch", "w", "watch", "stop at writes to the chosen tensor, bytes or semaphore", "stops", True),
    Action("mark", "m", "prompt('mark ')", "name the present place in time", "stops", True),
    Action("search", "slash", "prompt('/')", "search source, words or log", "look"),
    Action("search-again", "period", "search_again", "search for the next match", "look"),
    Action("command", "colon", "prompt('')", "type a command", "look"),
    Action("jump", "f", "jump", "jump to a pane by its letter", "look"),
    Action("next-pane", "tab", "focus_pane(1)", "next pane", "look"),
    Action("pane-before", "shift+tab", "focus_pane(-1)", "previous pane", "look"),
    Action("core-behind", "right_square_bracket", "core(1)", "look at the next core", "look"),
    Action("core-before", "left_square_bracket", "core(-1)", "look at the previous core", "look"),
    Action("rank-behind", "right_curly_bracket", "rank(1)", "look at the next rank", "look"),
    Action("rank-before", "left_curly_bracket", "rank(-1)", "look at the previous rank", "look"),
    Action("zoom", "z", "zoom", "give a pane the whole screen, or take it back", "screen"),
    Action("wider-left", "greater_than_sign", "split(2)", "move the division to the right", "screen"),
    Action("wider-right", "less_than_sign", "split(-2)", "move the division to the left", "screen"),
    Action("theme", "t", "theme", "light or dark", "screen"),
    Action("export", "e", "export", "save the screen as text and SVG", "screen"),
    Action("suspend", "ctrl+z", "suspend_process", "go back to the shell; its fg comes back here", "screen"),
    Action("help", "question_mark", "help", "this help", "screen"),
    Action("quit", "q", "leave", "leave", "screen"),
)
