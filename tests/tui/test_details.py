"""The window with all that is known of an instruction."""

from __future__ import annotations

from typing import Any

from formats.isa.field import Field
from neurontools.tui.details import DetailsScreen, details_lines
from neurontools.tui.questions import Details
from tests.tui.driving import Driver, drive


def test_the_window_tells_fields_cost_cause_and_provenance(deadlock: Any) -> None:
    async def script(driver: Driver) -> None:
        await driver.press("c")
        driver.pane("engines").focus()
        await driver.press("home", "down", "d")
        assert isinstance(driver.app.screen, DetailsScreen)
        text = driver.text
        assert "ACT pc 1" in text and "waits for S[6]>=1; it is 0 now" in text
        assert "why: deadlock: " in text or "why: only nc0 DVE pc 2 would signal S[6]" in text
        assert "cost: completes " in text and "wait_value" in text and "observed, isa.md 2" in text
        await driver.press("escape")
        assert not isinstance(driver.app.screen, DetailsScreen)
        driver.pane("disassembly").focus()
        await driver.press("d")
        assert isinstance(driver.app.screen, DetailsScreen) and "PSEUDO_DMA_TRIGGER" in driver.text

    drive(deadlock, script)


def test_every_field_of_every_word_is_told(deadlock: Any) -> None:
    for name, engine in deadlock.device.cores[0].engines.items():
        for loaded in engine.words:
            found = Details(0, name, loaded.pc).answer(deadlock)
            lines = [line for line, _ in details_lines(found)]
            fields: dict[str, Field[Any]] = type(loaded.word).FIELDS
            told = [fact.name for fact in found.facts.fields]
            assert told == [name for name, field in fields.items() if not field.alias]
            for fact in found.facts.fields:
                assert fact.provenance in ("documented", "observed", "inferred", "ours")
                assert any(line.startswith(f"{fact.name} ") and f"({fact.provenance}" in line for line in lines)
            assert found.facts.latency_ps is None or found.facts.latency_ps >= 0
