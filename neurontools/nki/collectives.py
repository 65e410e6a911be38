"""`nki.collectives`: the documented names; communication between devices is not modelled yet and says so."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NoReturn

from neurontools.nki.objects import NKIObject
from neurontools.nki.views import unsupported

LATER = (
    "all_gather",
    "all_gather_v",
    "all_reduce",
    "all_to_all",
    "all_to_all_v",
    "collective_permute",
    "collective_permute_implicit",
    "collective_permute_implicit_current_processing_rank_id",
    "collective_permute_implicit_reduce",
    "rank_id",
    "reduce_scatter",
)

__all__ = [*LATER, "ReplicaGroup"]  # noqa: PLE0604  the names are made below


@dataclass
class ReplicaGroup(NKIObject):
    """The groups of ranks that a collective works in."""

    groups: Any = None


def _make(name: str) -> Any:
    def later(*args: Any, **kwargs: Any) -> NoReturn:
        raise unsupported(f"nki.collectives.{name} (communication between devices)")

    later.__name__ = later.__qualname__ = name
    later.__doc__ = f"Refuse: {name} is not modelled yet."
    return later


globals().update({name: _make(name) for name in LATER})
