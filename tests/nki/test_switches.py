"""Variables of the environment, asked for as they are now."""

import os

import pytest

from neurontools.nki.switches import switch

NAME = "NEURONTOOLS_SWITCH_OF_A_TEST"


def test_a_variable_as_it_is_now(monkeypatch: pytest.MonkeyPatch) -> None:
    assert switch(NAME) == "" and switch(NAME, "off") == "off"
    for value in ("on", "", "off"):
        monkeypatch.setenv(NAME, value)
        assert switch(NAME, "none") == value == os.environ[NAME]
    monkeypatch.delenv(NAME)
    assert switch(NAME, "none") == "none"


def test_another_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "environ", {NAME: "other"})
    assert switch(NAME) == "other"
    monkeypatch.setattr(os, "environ", {})
    assert switch(NAME, "none") == "none"
