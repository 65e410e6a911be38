"""The hash in a NEFF header: the four ways it may have been made, under their names."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable

from formats.errors import FormatError

__all__ = ["HASH_VARIANTS", "SEEN_VARIANTS", "hash_field", "matching_variant", "swap_words"]

# Source: formats.md 2.3. Of 52 public files 50 have the first, the two of compiler 2.0.99229 the second; pkg_version 1
# is documented to select another algorithm, whose layout is not known: the digest in plain order is tried.
HASH_VARIANTS: tuple[str, ...] = ("md5-words-swapped", "md5", "sha256", "none")
SEEN_VARIANTS = HASH_VARIANTS[:2]


def swap_words(digest: bytes) -> bytes:
    """Return `digest` with the bytes of each 32-bit word reversed."""
    return b"".join(digest[i : i + 4][::-1] for i in range(0, len(digest), 4))


def hash_field(variant: str, data: Iterable[bytes | memoryview]) -> bytes:
    """Return the 32 bytes that the header holds for `data` (chunks of everything after the header).

    Raises FormatError for a name that is not in HASH_VARIANTS.
    """
    if variant == "none":
        return bytes(32)
    if variant not in HASH_VARIANTS:
        raise FormatError("unknown hash variant", expected=" ".join(HASH_VARIANTS), got=repr(variant))
    digest = hashlib.sha256() if variant == "sha256" else hashlib.md5(usedforsecurity=False)
    for chunk in data:
        digest.update(chunk)
    raw = digest.digest()
    return (swap_words(raw) if variant == "md5-words-swapped" else raw).ljust(32, b"\0")


def matching_variant(stored: bytes, data: bytes | memoryview) -> str | None:
    """Return the name of the variant that gives `stored` for `data`; None when no variant does."""
    if not any(stored):
        return "none"
    return next((name for name in HASH_VARIANTS[:3] if hash_field(name, [data]) == stored), None)
