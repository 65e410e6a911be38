"""The names of the engines: those that files use, and those that people type."""

from __future__ import annotations

from formats.errors import NotFoundError

__all__ = ["ENGINES", "ENGINE_ALIASES", "engine_name", "short_engine"]

# In the order in which captures number them (formats.md 6.1).
ENGINES: tuple[str, ...] = ("PE", "Activation", "Pool", "DVE", "SP")

# What people type, in any case, by the NEFF's spelling.
ENGINE_ALIASES: dict[str, str] = {
    "pe": "PE", "tensor": "PE",
    "act": "Activation", "activation": "Activation", "scalar": "Activation",
    "pool": "Pool", "gpsimd": "Pool",
    "dve": "DVE", "vector": "DVE",
    "sp": "SP", "sync": "SP",
}  # fmt: skip


def engine_name(text: str) -> str:
    """Return the NEFF's spelling of an engine: PE, Activation, Pool, DVE or SP; NotFoundError for none of them."""
    try:
        return ENGINE_ALIASES[text.lower()]
    except KeyError:
        raise NotFoundError(f"no engine {text!r}; one of pe, act, pool, dve, sp") from None


def short_engine(name: str) -> str:
    """Return the short spelling of an engine, lower case, as commands take it."""
    return "act" if name == "Activation" else name.lower()
