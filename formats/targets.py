"""Names of the targets: generations, chips, and the architecture codes that files carry."""

from __future__ import annotations

from formats.errors import FormatError
from formats.named_tuple import NamedTuple

__all__ = ["TARGETS", "Target", "resolve_target"]


class Target(NamedTuple):
    """One chip family as files and people name it."""

    name: str
    generation: str
    arch_code: str
    core: str
    emulated: bool = True

    def __str__(self) -> str:
        return self.name


# Source: formats.md 2.5 (arch codes: names in public NEFFs, `mariana` and `tonga` by name only), hardware.md 1.2.
TARGETS: tuple[Target, ...] = (
    Target("inf1", "gen1", "tonga", "NeuronCore-v1", emulated=False),
    Target("trn1", "gen2", "sunda", "NeuronCore-v2"),
    Target("inf2", "gen2", "sunda", "NeuronCore-v2"),
    Target("trn2", "gen3", "cayman", "NeuronCore-v3"),
    Target("trn3", "gen4", "mariana", "NeuronCore-v4"),
)


_NAMED = {name: one for one in reversed(TARGETS) for name in (one.name, one.generation, one.arch_code)}


def resolve_target(text: str | Target, field: str | None = None) -> Target:
    """Return the target that a chip name, a generation or an architecture code names; gen2 and sunda give trn1.

    An unknown one is a FormatError, which says that `field` holds it.
    """
    if isinstance(text, Target):
        return text
    found = _NAMED.get(text) or _NAMED.get(text.strip().lower())
    if found is not None:
        return found
    names = ", ".join(dict.fromkeys(n for t in TARGETS for n in (t.name, t.generation, t.arch_code)))
    raise FormatError("unknown target", field=field, expected=f"one of {names}", got=repr(text))
