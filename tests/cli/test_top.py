"""`neurontools top`: figures of the documented report, text, the screen at two sizes, keys."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from neurontools.top.figures import ALL, figures
from neurontools.top.lines import core_lines, text_lines
from neurontools.top.source import Recorded, source_of
from tests.cli.check import checked_json
from tests.cli.conftest import Cli
from tests.cli.test_mem_watch import saved
from tests.nrt.monitor_sample import documented_report
from tests.tui.driving import LARGE, SMALL, check_golden


def two_programs() -> dict[str, Any]:
    """Return the documented report with a second program on another core."""
    report = documented_report()
    second = documented_report()["neuron_runtime_data"][0]
    second |= {"neuron_runtime_tag": "other", "pid": 7}
    cores = second["report"]["neuroncore_counters"]["neuroncores_in_use"]
    second["report"]["neuroncore_counters"]["neuroncores_in_use"] = {"9": cores["1"]}
    memory = second["report"]["memory_used"]["neuron_runtime_used_bytes"]["usage_breakdown"]
    memory["neuroncore_memory_usage"] = {"9": memory["neuroncore_memory_usage"]["0"]}
    second["report"]["memory_used"]["neuron_runtime_used_bytes"]["neuron_device"] //= 2
    second["report"]["memory_used"]["loaded_models"] = []
    report["neuron_runtime_data"].append(second)
    return report


def test_figures_add_up() -> None:
    report = two_programs()
    whole = figures(report)
    assert whole.tabs == [ALL, "my_app_1", "other"] and len(whole.cores) == 64
    assert [one.core for one in whole.cores if one.percent] == [0, 1, 9]
    for tab in whole.tabs:
        found = figures(report, tab)
        assert sum(found.device.values()) == found.device_total and sum(found.host.values()) == found.host_total
        assert sum(one.device for one in found.tree if one.level == 0) == found.device_total
        assert sum(one.device for one in found.tree if one.level == 1) == found.device_total
        assert sum(one.device for one in found.tree if one.level == 2) == found.device_total
    assert figures(report, "gone").tab == ALL
    assert whole.device_total == sum(figures(report, tab).device_total for tab in whole.tabs[1:])


def test_programs_with_one_tag_are_told_apart() -> None:
    report = two_programs()
    report["neuron_runtime_data"][1]["neuron_runtime_tag"] = "my_app_1"
    assert figures(report).tabs == [ALL, "my_app_1 (0)", "my_app_1 (7)"]


def test_cores_that_do_not_fit_are_counted() -> None:
    found = figures(two_programs())
    assert len(core_lines(found, 80)) == 1 + 32 and max(map(len, core_lines(found, 80))) <= 80
    few = core_lines(found, 80, most=4)
    assert len(few) == 4 and "busiest 6; 58 more are idle" in few[0] and any("NC9" in line for line in few)
    assert any("1.23T" in line for line in core_lines(found, 80, flops=True))


def test_text_and_json(cli: Cli, root: Path, tmp_path: Path) -> None:
    path = saved(root, tmp_path)
    result = checked_json(cli("top", path, "--json"), "top")
    assert result["instance_type"] == "trn2.48xlarge" and result["device"]["Tensors"] == (3 << 30) + 16
    ended = cli("top", path, "--once", "--width", "80")
    assert ended.status == 0 and all(len(line) <= 100 for line in ended.out.splitlines())
    stream = tmp_path / "capture.json"
    stream.write_text(json.dumps(two_programs()))
    ended = cli("top", stream, "--tab", "other")
    assert ended.status == 0 and ended.out.splitlines() == text_lines(figures(two_programs(), "other"))
    ended = cli("top", stream, "--once", "--tab", "nobody")
    assert ended.status == 4 and "no program 'nobody'; there is all, " in ended.error_line


def drive(report: Any, size: tuple[int, int], script: Callable[[Any, Any], Awaitable[None]], more: Any = ()) -> None:
    from neurontools.top.app import TopApp

    async def main() -> None:
        app = TopApp(Recorded([report, *more]))
        async with app.run_test(size=size) as pilot:
            await pilot.pause()
            await script(app, pilot)

    asyncio.run(main())


@pytest.mark.parametrize(("size", "name"), [(SMALL, "80x24"), (LARGE, "200x50")])
def test_the_screen(size: tuple[int, int], name: str) -> None:
    from neurontools.tui.export import screen_text

    async def script(app: Any, pilot: Any) -> None:
        check_golden(f"top-{name}", screen_text(app))
        await pilot.press("d", "f", "x")
        await pilot.pause()
        check_golden(f"top-open-{name}", screen_text(app))

    drive(two_programs(), size, script)


def test_keys() -> None:
    idle = documented_report()
    idle["neuron_runtime_data"] = []

    async def script(app: Any, pilot: Any) -> None:
        assert app.tab == ALL
        await pilot.press("3")
        assert app.tab == "other"
        await pilot.press("d")
        assert app.tab == ALL
        await pilot.press("a")
        assert app.tab == "other"
        await pilot.press("9")
        assert app.tab == "other"
        await pilot.press("full_stop")
        assert app.source.number == 2 and app.tab == ALL
        await pilot.press("full_stop", "comma")
        assert app.source.number == 1
        await pilot.press("x")
        nodes = [node for node in app._branches() if node.allow_expand]
        assert nodes and all(node.is_expanded for node in nodes)
        await pilot.press("x")
        assert not any(node.is_expanded for node in nodes)
        await pilot.resize_terminal(60, 20)
        await pilot.press("q")

    drive(two_programs(), LARGE, script, [idle])


def test_a_report_that_cannot_be_had_ends_nothing(tmp_path: Path) -> None:
    (tmp_path / "sessions").mkdir()
    source = source_of(tmp_path / "sessions", "trn2.48xlarge")
    from neurontools.top.app import TopApp
    from neurontools.tui.export import screen_text

    async def main() -> None:
        app = TopApp(source, period=60)
        async with app.run_test(size=(200, 24)) as pilot:
            damaged = tmp_path / "sessions" / "x.json"
            damaged.write_text('{"schema": "neurontools.machine-state/1"')
            app.refresh_report()
            await pilot.pause()
            assert "not JSON" in screen_text(app)
            damaged.unlink()
            app.refresh_report()
            await pilot.pause()
            assert "not JSON" not in screen_text(app)

    asyncio.run(main())


def test_the_screen_stays_whoever_started_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """In a container that is process 1."""
    from neurontools.top.app import TopApp

    monkeypatch.setattr("os.getppid", lambda: 1)
    gone: list[bool] = []
    for there in (True, False):
        monkeypatch.setattr("os.isatty", lambda number, there=there: there)
        app = TopApp(Recorded([two_programs()]))
        monkeypatch.setattr(app, "exit", lambda there=there: gone.append(there))
        app._leave_with_the_terminal()
    assert gone == [False]


def test_names_from_files_do_not_command_the_terminal() -> None:
    from neurontools.tui.export import screen_text

    bad = documented_report()
    bad["neuron_runtime_data"][0]["neuron_runtime_tag"] = "\x1b]0;x\x07[red]tag"
    bad["neuron_runtime_data"][0]["report"]["memory_used"]["loaded_models"][0]["name"] = "[bold]\x1b[2J"

    async def script(app: Any, pilot: Any) -> None:
        await pilot.press("x")
        await pilot.pause()
        text = screen_text(app)
        assert "\x1b" not in text and "[red]tag" in text and "[bold]" in text

    drive(bad, LARGE, script)


def test_bad_places(cli: Cli, tmp_path: Path) -> None:
    assert cli("top", tmp_path / "missing").status == 4
    (tmp_path / "bad").write_text("{}")
    assert cli("top", tmp_path / "bad").status == 3
    assert cli("top", "--instance", "x").status == 4
    assert not source_of(tmp_path, "trn2.48xlarge").recorded
