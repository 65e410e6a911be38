"""`nl.tile_size`: sizes of the target that a kernel asks for."""

from __future__ import annotations

from formats.neuron_core import PARTITIONS, PSUM_BANK_BYTES, PSUM_BANKS, PSUM_FP32
from neurontools.builder.limits import LIMITS, Limits
from neurontools.nki.objects import NKIObject
from neurontools.nki.tracer import current, default_target

__all__ = ["tile_size"]


def _limits() -> Limits:
    t = current()
    return t.limits if t is not None else LIMITS[default_target().generation]


class _TileSize(NKIObject):
    """Sizes of tiles; the SBUF figures follow the target of the launch (or of the environment outside a kernel).

    Source: hardware.md 2.1, 2.3.
    """

    __slots__ = ()

    pmax = PARTITIONS
    psum_bank_fmax = PSUM_FP32
    psum_fmax = PSUM_FP32
    psum_bank_fmax_bytes = PSUM_BANK_BYTES
    gemm_stationary_fmax = PARTITIONS
    gemm_moving_fmax = PSUM_FP32
    bn_stats_fmax = 512
    psum_min_align = 4
    sbuf_min_align = 1

    @property
    def psum_num_banks(self) -> int:
        """Return the PSUM banks of a partition."""
        return PSUM_BANKS

    @property
    def sbuf_size_bytes(self) -> int:
        """Return the bytes of the whole SBUF."""
        return _limits().sbuf_bytes * PARTITIONS

    @property
    def sbuf_fmax_bytes(self) -> int:
        """Return the bytes per SBUF partition that kernels may use."""
        return _limits().sbuf_usable_bytes

    @property
    def sbuf_fmax(self) -> int:
        """Return the fp32 elements per SBUF partition that kernels may use."""
        return _limits().sbuf_usable_bytes // 4

    @property
    def total_available_sbuf_size(self) -> int:
        """Return the bytes per SBUF partition that kernels may use; the name is AWS's."""
        return _limits().sbuf_usable_bytes


tile_size = _TileSize()
