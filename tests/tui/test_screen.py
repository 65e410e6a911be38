"""The whole screen: both sizes, every pane, every key."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from neurontools.debugger import Session
from neurontools.tui.actions import ACTIONS
from neurontools.tui.layout import LEFT, RIGHT, TABS
from tests.tui.driving import LARGE, SMALL, Driver, check_golden, drive, open_program

ENGINES = ("PE", "ACT", "POOL", "DVE", "SP")


def _events(driver: Driver) -> int:
    assert driver.app.snapshot is not None
    return driver.app.snapshot.state.events


@pytest.mark.parametrize(("size", "name"), [(LARGE, "large"), (SMALL, "small")])
def test_the_first_screen(double: Session, size: tuple[int, int], name: str) -> None:
    async def script(driver: Driver) -> None:
        check_golden(f"start-{name}", driver.text)

    drive(double, script, size, "double.neff")


@pytest.mark.parametrize(("size", "name"), [(LARGE, "large"), (SMALL, "small")])
def test_a_deadlock(deadlock: Session, size: tuple[int, int], name: str) -> None:
    async def script(driver: Driver) -> None:
        await driver.press("c")
        check_golden(f"deadlock-{name}", driver.text)
        # The engines that wait, the semaphore, and who does not post it.
        assert "ACT  ⏸ wait" in driver.text and "waits S[6]>=1, is 0  ← DVE pc 2 (deadlock)" in driver.text
        assert driver.status.startswith(" ✗ hang · ACT pc 1 · ")
        assert "1 finding" in driver.status or size == SMALL, "the count stands behind the verdict"

    drive(deadlock, script, size, "deadlock.s")


def test_all_panes_on_a_large_screen_and_a_tab_of_them_on_a_small_one(double: Session, program_file: Path) -> None:
    names = [name for name, _, _ in (*LEFT, *RIGHT)]
    assert sorted(names) == sorted(name for tab in TABS.values() for name in tab)

    async def large(driver: Driver) -> None:
        assert [pane.id for pane in driver.app.visible_panes] == names
        assert all(pane.TITLE in driver.text and (pane.size.height > 1 or pane.wanted in (0, 1))
                   for pane in driver.app.visible_panes)  # fmt: skip

    async def small(driver: Driver) -> None:
        for number, (tab, panes) in enumerate(TABS.items(), 1):
            await driver.press(str(number))
            assert {pane.id for pane in driver.app.visible_panes} == set(panes)
            assert f"[{number} {tab}]" in driver.text
            assert all((pane.size.height > 1 or pane.wanted in (0, 1)) and pane.size.width == 80
                       for pane in driver.app.visible_panes)  # fmt: skip

    drive(double, large)
    drive(open_program(program_file), small, SMALL)


def test_a_resize_goes_over_to_tabs_and_back(double: Session) -> None:
    async def script(driver: Driver) -> None:
        before = driver.text
        await driver.pilot.resize_terminal(*SMALL)
        await driver.settle()
        assert len(driver.app.visible_panes) == 4
        await driver.pilot.resize_terminal(*LARGE)
        await driver.settle()
        assert driver.text == before

    drive(double, script)


def test_keys_that_move(double: Session) -> None:
    async def script(driver: Driver) -> None:
        await driver.press("s")
        assert _events(driver) == 1 and "#0 ·" in driver.status
        await driver.press("s", "s", "S")
        assert _events(driver) == 2
        await driver.press("i")
        engine = driver.app.snapshot.state.focus[1]
        here = _events(driver)
        await driver.press("i")
        after = _events(driver)
        await driver.press("I")
        assert _events(driver) == after - 1 and driver.app.snapshot.state.focus[1] == engine
        await driver.press("n")
        assert _events(driver) > here
        await driver.press("N")
        assert _events(driver) <= here
        await driver.press("c")
        assert driver.app.snapshot.state.outcome == "finished" and "✓ finished" in driver.status
        await driver.press("C")
        assert _events(driver) == 0
        await driver.press("space")
        assert driver.app.snapshot.state.outcome == "finished"

    drive(double, script)


def test_stepping_back_paints_what_was_there_before(double: Session) -> None:
    async def script(driver: Driver) -> None:
        await driver.press("s", "s", "s")
        engines, code = driver.pane_text("engines"), driver.pane_text("disassembly")
        await driver.press("s", "S")
        assert driver.pane_text("engines") == engines and driver.pane_text("disassembly") == code

    drive(double, script)


def test_stepping_does_not_move_what_stays(deadlock: Session) -> None:
    """No jitter: names and columns stay in their places, and panes but where one of them fills or an engine ends."""

    async def script(driver: Driver) -> None:
        seen: dict[object, list[object]] = {}
        for _ in range(6):
            await driver.press("s")
            lines = driver.pane_text("engines").split("\n")
            names = [line[1:5].strip() for line in lines[1:] if line[1:5].strip() in ENGINES]
            assert names == ["PE", "ACT", "POOL", "DVE", "SP"]
            wishes = tuple(pane.wanted for pane in driver.app.visible_panes)
            places = [pane.region for pane in driver.app.visible_panes]
            assert seen.setdefault(wishes, places) == places
        assert len(seen) < 6

    drive(deadlock, script)


def test_the_command_line_has_the_whole_language(double: Session) -> None:
    async def script(driver: Driver) -> None:
        await driver.type("break dve:2")
        assert "breakpoint 1: DVE pc 2" in driver.pane_text("log")
        await driver.type("continue")
        assert "breakpoint 1" in driver.pane_text("log") and "■ breakpoint" in driver.status
        await driver.type("print x[0, 0:4]")
        assert "x[0, 0:4]: float32[4] in HBM" in driver.pane_text("log")
        await driver.type("fly")
        assert "no command 'fly'" in driver.pane_text("log")
        await driver.type("goto start")
        assert _events(driver) == 0

    drive(double, script)


def test_history_and_completion(double: Session) -> None:
    async def script(driver: Driver) -> None:
        line = driver.app.command_line.input
        await driver.type("info queues")
        await driver.type("mark here")
        await driver.press("colon", "up")
        assert line.value == "mark here"
        await driver.press("up")
        assert line.value == "info queues"
        await driver.press("down", "down")
        assert line.value == ""
        line.value = "disas"
        await driver.press("tab")
        assert line.value == "disassemble "
        line.value = "reverse-"
        await driver.press("tab")
        assert "reverse-step" in driver.pane_text("log")
        await driver.press("escape")
        assert line.value == "" and driver.app.focused is driver.pane("engines")

    drive(double, script)


def test_history_is_kept_for_the_next_time(double: Session, program_file: Path) -> None:
    async def first(driver: Driver) -> None:
        await driver.type("info queues")

    async def second(driver: Driver) -> None:
        assert driver.app.command_line.history == ["info queues"]

    drive(double, first)
    drive(open_program(program_file), second)


def test_an_empty_line_repeats_and_a_block_belongs_to_its_breakpoint(double: Session) -> None:
    async def script(driver: Driver) -> None:
        await driver.type("step")
        await driver.type("")
        assert _events(driver) == 2
        await driver.type("break dve:2")
        await driver.press("colon")
        for line in ("commands 1", "info breakpoints", "end"):  # Escape in between drops a block
            driver.app.command_line.input.value = line
            await driver.press("enter")
        await driver.press("escape")
        await driver.type("continue")
        assert "› info breakpoints" in driver.pane_text("log")

    drive(double, script)


def test_break_at_the_cursor(deadlock: Session) -> None:
    async def script(driver: Driver) -> None:
        driver.pane("source").focus()
        await driver.press("home", *["down"] * 21, "b")  # line 22
        assert [Path(each.where).name for each in driver.app.worker._session.breakpoints] == ["deadlock.s:22"]
        assert "●" in driver.pane_text("source")
        await driver.press("b")
        assert not driver.app.worker._session.breakpoints and "●" not in driver.pane_text("source")
        await driver.type("focus dve")
        driver.pane("disassembly").focus()
        await driver.press("end", "up", "b")
        assert driver.app.worker._session.breakpoints[0].where == "DVE pc 1"
        await driver.press("c")
        assert "■ breakpoint" in driver.status

    drive(deadlock, script)


def test_watch_what_is_chosen(deadlock: Session) -> None:
    async def script(driver: Driver) -> None:
        await driver.press("w")
        assert not driver.app.worker._session.breakpoints
        await driver.press("c")
        driver.pane("semaphores").focus()
        await driver.press("right", "w")
        assert driver.app.worker._session.breakpoints[0].where == "change of S[4] on nc0"

    drive(deadlock, script)


def test_choosing_an_instruction_finds_the_bytes_it_touches(double: Session) -> None:
    async def script(driver: Driver) -> None:
        await driver.type("focus dve")
        driver.pane("disassembly").focus()
        await driver.press("home", "down", "down", "enter")
        chosen = driver.app.selection
        assert chosen.kind == "instruction" and chosen.value == (0, "DVE", 2)
        assert {(each.space, each.byte, each.nbytes) for each in chosen.reads} == {("SBUF", 0x4000, 256)}
        assert {(each.space, each.byte, each.nbytes) for each in chosen.writes} == {("SBUF", 0x5000, 256)}
        await driver.type("focus sp")
        driver.pane("disassembly").focus()
        await driver.press("home", "down", "enter")
        assert [each.space for each in driver.app.selection.reads] == ["HBM"]
        assert {each.space for each in driver.app.selection.writes} == {"SBUF"}

    drive(double, script)


def test_the_engines_pane_moves_the_focus(deadlock: Session) -> None:
    async def script(driver: Driver) -> None:
        driver.pane("engines").focus()
        await driver.press("home", "down", "down", "enter")
        assert driver.app.snapshot.state.focus == (0, "Activation")
        assert "DISASSEMBLY ACT" in driver.text and "(nc0 act) ›" in driver.text
        assert await driver.pilot.click("#engines", offset=(3, 7))
        await driver.settle()
        assert driver.app.snapshot.state.focus == (0, "DVE")

    drive(deadlock, script)


def test_a_semaphore_lists_waiters_and_posters(deadlock: Session) -> None:
    async def script(driver: Driver) -> None:
        await driver.press("c")
        driver.pane("semaphores").focus()
        await driver.press("right", "right", "z")
        text = driver.pane_text("semaphores")
        assert "›S[6]=0" in text and "waits Activation pc 1 S[6]>=1" in text
        assert "posts   +1 DVE pc 2 (blocked)" in text
        await driver.press("enter")
        assert "posts" not in driver.pane_text("semaphores")

    drive(deadlock, script)


def test_changes_of_semaphores_are_marked(double: Session) -> None:
    async def script(driver: Driver) -> None:
        await driver.type("until dve:2")
        assert "S[8]=16↑" in driver.pane_text("semaphores")
        await driver.type("goto start")
        assert "S[8]=0↓" in driver.pane_text("semaphores")

    drive(double, script)


def test_a_queue_opens_its_transfers(double: Session) -> None:
    async def script(driver: Driver) -> None:
        while "tail 1" not in driver.pane_text("queues"):
            assert driver.app.snapshot.state.outcome == "running"
            await driver.press("s")
        driver.pane("queues").focus()
        await driver.press("home", "enter")
        assert "copy 32768 bytes x" in driver.pane_text("queues")
        await driver.press("enter")
        assert "   pc " not in driver.pane_text("queues")

    drive(double, script)


def test_search(deadlock: Session) -> None:
    async def script(driver: Driver) -> None:
        driver.pane("source").focus()
        await driver.press("slash")
        driver.app.command_line.input.value = "/qout"
        await driver.press("enter")
        lines = driver.pane("source").texts
        first = driver.pane("source").cursor
        assert "qOut" in lines[first]
        await driver.press("period")
        assert "qOut" in lines[driver.pane("source").cursor] and driver.pane("source").cursor != first
        await driver.type("focus dve")
        driver.pane("disassembly").focus()
        await driver.press("slash")
        driver.app.command_line.input.value = "/copy"
        await driver.press("enter")
        assert driver.pane("disassembly").pc == 2

    drive(deadlock, script)


def test_jump_zoom_panes_and_division(double: Session) -> None:
    async def script(driver: Driver) -> None:
        await driver.press("f")
        assert "(s) ENGINES" in driver.text and "(f) QUEUES" in driver.text
        await driver.press("f")
        assert driver.app.focused is driver.pane("queues") and "(f) QUEUES" not in driver.text
        await driver.press("f", "escape")
        assert driver.app.focused is driver.pane("queues")
        await driver.press("tab")
        assert driver.app.focused is driver.pane("semaphores")
        await driver.press("shift+tab", "shift+tab", "z")
        assert driver.app.visible_panes == [driver.pane("disassembly")]
        assert driver.pane("disassembly").size.width == 200
        await driver.press("z")
        assert len(driver.app.visible_panes) == len(driver.app.panes)
        wide = driver.pane("engines").size.width
        await driver.press("greater_than_sign")
        assert driver.pane("engines").size.width > wide
        await driver.press("less_than_sign", "less_than_sign")
        assert driver.pane("engines").size.width < wide

    drive(double, script)


def test_the_layout_is_remembered(double: Session, program_file: Path) -> None:
    async def first(driver: Driver) -> None:
        await driver.press("t", "less_than_sign", "3")

    async def second(driver: Driver) -> None:
        assert driver.app.theme == "textual-light"
        assert driver.app._layout.left == 58 and driver.app._tab == "SBUF"

    drive(double, first)
    drive(open_program(program_file), second)


def test_rate_and_pause(double: Session) -> None:
    async def script(driver: Driver) -> None:
        await driver.press("r", "r", "r")
        assert driver.app.worker.rate == 10.0 and "at most 10/s" not in driver.status
        await driver.pilot.press("c")
        while not driver.app.worker.running:
            await driver.pilot.pause(0.01)
        await driver.pilot.press("p")
        await driver.settle()
        assert driver.app.snapshot.state.outcome == "running" and "■ interrupted" in driver.status
        assert "at most 10/s" in driver.status
        await driver.press("r", "r", "c")
        assert driver.app.snapshot.state.outcome == "finished"

    drive(double, script)


def test_export(double: Session, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)

    async def script(driver: Driver) -> None:
        before = driver.text
        await driver.press("e")
        assert (tmp_path / "neurontools-1.txt").read_text() == before
        assert "<svg" in (tmp_path / "neurontools-1.svg").read_text()
        await driver.press("e")
        assert (tmp_path / "neurontools-2.svg").exists()

    drive(double, script)


def test_the_palette_has_every_action_pane_and_theme(double: Session) -> None:
    async def script(driver: Driver) -> None:
        titles = {command.title for command in driver.app.get_system_commands(driver.app.screen)}
        assert titles >= {action.name for action in ACTIONS}
        assert titles >= {f"pane {name}" for name in driver.app.panes}
        await driver.press("ctrl+p")
        for key in "pane log":
            await driver.pilot.press("space" if key == " " else key)
        await driver.pilot.pause(0.5)
        await driver.pilot.press("enter")
        await driver.settle()
        assert driver.app.focused is driver.pane("log")

    drive(double, script)


def test_quit(double: Session) -> None:
    async def key(driver: Driver) -> None:
        await driver.press("q")
        assert driver.app.return_value == 0

    drive(double, key)


def test_quit_by_command_stops_a_run(double: Session) -> None:
    async def command(driver: Driver) -> None:
        driver.app.worker.rate = 1.0
        await driver.pilot.press("c")
        await driver.pilot.press("q")
        assert driver.app.return_value == 0

    drive(double, command)


def test_two_cores_have_a_switcher(root: Path) -> None:
    session = open_program(root / "fixtures" / "neff" / "idle_pair.neff")
    assert len(session.device.cores) == 2

    async def script(driver: Driver) -> None:
        assert "nc0 of 2" in driver.status
        await driver.press("right_square_bracket")
        assert "nc1 of 2" in driver.status and "(nc1 " in driver.text
        await driver.press("left_square_bracket")
        assert "nc0 of 2" in driver.status

    drive(session, script)


def test_no_color_says_the_same(double: Session, program_file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    texts = []

    async def script(driver: Driver) -> None:
        await driver.press("s")
        found = [driver.pane_text(name) for name in driver.app.panes if name not in ("sbuf", "psum")]
        # What stands behind the divider belongs to a map.
        texts.append(["\n".join(line.partition("│")[0].rstrip() for line in one.split("\n")) for one in found])

    drive(double, script)
    monkeypatch.setenv("NO_COLOR", "1")
    drive(open_program(program_file), script)
    assert texts[0] == texts[1]


def test_the_screen_stands_at_the_word_that_faulted(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An earlier word is still in flight there: the oldest that is not complete is not the one that faulted."""
    monkeypatch.chdir(root)

    async def script(driver: Driver) -> None:
        await driver.press("c")
        fault = driver.app.worker._session.device.fault
        assert fault is not None and f"pc {fault.pc} · out_of_bounds.s:15" in driver.status
        standing = [line for line in driver.pane_text("source").split("\n") if "▶" in line]
        assert len(standing) == 1 and standing[0].split()[0] == "DVE▶15"
        words = driver.pane_text("disassembly").split("\n")
        assert [line.split()[1] for line in words if line.strip().startswith("▶")] == [str(fault.pc)]
        assert any(line.split()[:2] == ["»", str(fault.pc - 1)] for line in words)
        row = next(line for line in driver.pane_text("engines").split("\n") if "✗ flt" in line)
        assert f" {fault.pc} TENSOR_TENSOR" in " ".join(row.split())

    drive(open_program(Path("examples/out_of_bounds.s")), script)


def test_the_number_on_the_first_line_is_where_goto_goes(double: Session) -> None:
    async def script(driver: Driver) -> None:
        assert "· start ·" in driver.status
        await driver.press("s", "s", "s")
        for number in (1, 2, 0):
            await driver.type(f"goto #{number}")
            assert f"· #{number} ·" in driver.status
        await driver.type("goto start")
        assert "· start ·" in driver.status

    drive(double, script)


def test_a_newcomer_is_told_how_to_begin_until_the_first_command(double: Session) -> None:
    async def script(driver: Driver) -> None:
        assert [each.message for each in driver.app._notifications] == [
            "c runs to the first fault, s steps, S goes back; ? lists keys and signs, : takes a command, q leaves"
        ]
        await driver.press("s")
        assert not list(driver.app._notifications)

    drive(double, script, SMALL, newcomer=True)


def test_ctrl_c_pauses_what_runs(deadlock: Session) -> None:
    async def script(driver: Driver) -> None:
        driver.app.worker.rate = 1.0
        await driver.pilot.press("c")
        await driver.pilot.press("colon")  # also while a command is typed
        assert await reached(driver, lambda: driver.app.worker.running)
        await driver.pilot.press("ctrl+c")
        await driver.settle()
        assert driver.app.snapshot.state.outcome == "running" and "interrupted" in driver.status
        await driver.press("escape")
        assert driver.app.is_running

    drive(deadlock, script)


async def reached(driver: Driver, holds: Callable[[], bool]) -> bool:
    """Return whether something comes true soon."""
    for _ in range(200):
        if holds():
            return True
        await driver.pilot.pause(0.02)
    return False
