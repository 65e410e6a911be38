"""Documented ISA names that are not modelled yet: they exist, and say so when called."""

from __future__ import annotations

from typing import Any, NoReturn

from neurontools.nki.objects import NKIObject
from neurontools.nki.views import unsupported

LATER = (
    "activate2",
    "affine_select",
    "bn_aggr",
    "bn_stats",
    "dma_compute",
    "dropout",
    "exponential",
    "iota",
    "local_gather",
    "max8",
    "nc_find_index8",
    "nc_match_replace8",
    "nc_matmul_mx",
    "nc_n_gather",
    "nonzero_with_count",
    "quantize_mx",
    "rand2",
    "rand_get_state",
    "rand_set_state",
    "range_select",
    "register_alloc",
    "register_load",
    "register_move",
    "register_store",
    "rng",
    "select_reduce",
    "sequence_bounds",
    "set_rng_seed",
    "tensor_copy_predicated",
    "tensor_partition_reduce",
    "tensor_scalar_cumulative",
    "tensor_scalar_reduce",
    "topk",
)

__all__ = [*LATER, "VirtualRegister"]  # noqa: PLE0604  the names are made below


class VirtualRegister(NKIObject):
    """A register whose value only the device knows; not modelled yet."""

    __slots__ = ()

    def __init__(self, state: Any = None, frozen: bool = False) -> None:
        raise unsupported("nisa.VirtualRegister")


def _make(name: str) -> Any:
    def later(*args: Any, **kwargs: Any) -> NoReturn:
        raise unsupported(f"nisa.{name}")

    later.__name__ = later.__qualname__ = name
    later.__doc__ = f"Refuse: nisa.{name} is not modelled yet."
    return later


globals().update({name: _make(name) for name in LATER})
