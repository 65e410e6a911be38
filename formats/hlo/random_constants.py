"""Constants of the counter-based generators, as published by Salmon et al. (2011): ThreeFry 2x32-20, Philox 4x32-10."""

from __future__ import annotations

__all__ = ["PARITY", "PHILOX", "ROTATIONS", "WEYL"]

ROTATIONS = (13, 15, 26, 6, 17, 29, 16, 24)
PARITY = 0x1BD11BDA  # of Skein's key schedule, which ThreeFry has from it
PHILOX = (0xD2511F53, 0xCD9E8D57)  # multipliers
WEYL = (0x9E3779B9, 0xBB67AE85)  # steps of the key: the golden ratio, and the square root of 3 less 1
