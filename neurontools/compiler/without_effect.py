"""Options of neuronx-cc that are accepted, so that command lines written for it work, and that change nothing here."""

from __future__ import annotations

from collections.abc import Mapping

from formats.named_tuple import NamedTuple

__all__ = ["WITHOUT_EFFECT", "Idle", "ignored", "told"]


class Idle(NamedTuple):
    """An option that changes nothing: its default, which asks for nothing, and why."""

    default: object
    reason: str


WITHOUT_EFFECT = {
    "--distribution-strategy": Idle("", "it places collectives of several ranks; here they keep the program's order"),
    "--enable-fast-context-switch": Idle(False, "when weights are loaded is up to the runtime; no NEFF says it"),
    "--pipeline": Idle("compile", "there is one stage; SaveTemps is honoured"),
    "--internal-tensorizer-opt-level": Idle(2, "it belongs to AWS's own tensorizer"),
    "--internal-hlo2tensorizer-options": Idle("", "it belongs to AWS's own tensorizer"),
}


def ignored(values: Mapping[str, object]) -> tuple[str, ...]:
    """Return the options without effect that have another value than the default."""
    return tuple(name for name, one in WITHOUT_EFFECT.items() if values[name] != one.default)


def told(names: tuple[str, ...]) -> str:
    """Return the warning about options that were used."""
    return "; ".join(f"{name}: accepted, without effect: {WITHOUT_EFFECT[name].reason}" for name in names)
