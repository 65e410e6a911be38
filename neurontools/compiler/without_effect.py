"""Options of neuronx-cc that are accepted, so that command lines written for it work, and that change nothing here."""

from __future__ import annotations

from collections.abc import Mapping

__all__ = ["WITHOUT_EFFECT", "ignored", "told"]

WITHOUT_EFFECT: dict[str, object] = {
    "--model-type": "generic",
    "--distribution-strategy": "",
    "--optlevel": 2,
    "--disable-mixed-precision-accumulation": False,
    "--enable-saturate-infinity": False,
    "--enable-fast-context-switch": False,
    "--verbose": "warning",
    "--pipeline": "compile",
    "--internal-tensorizer-opt-level": 2,
    "--internal-hlo2tensorizer-options": "",
}
"""Each with its default, which asks for nothing."""


def ignored(values: Mapping[str, object]) -> tuple[str, ...]:
    """Return the options without effect that have another value than the default."""
    return tuple(name for name, default in WITHOUT_EFFECT.items() if values[name] != default)


def told(names: tuple[str, ...]) -> str:
    """Return the warning about options that were used."""
    return f"{', '.join(names)}: accepted, without effect in this compiler"
