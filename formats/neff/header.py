"""The 1024-byte header of a NEFF: every field, both ways, and the names of the feature bits."""

from __future__ import annotations

import struct

from formats.errors import FormatError
from formats.named_tuple import NamedTuple
from formats.neff.fields import printable

__all__ = ["FEATURE_BITS", "HEADER_SIZE", "FeatureBit", "Header", "feature_names", "header_name"]

HEADER_SIZE = 1024
# Headers of another size were never seen; one that claims more than this is damage, not a new version.
MAX_HEADER_SIZE = 1 << 20
_LAYOUT = struct.Struct("<5Q128sI32s16s256sI64sQI468s")


class FeatureBit(NamedTuple):
    """One bit of `feature_bits` and how its name is known."""

    bit: int
    name: str
    provenance: str
    cite: str


FEATURE_BITS: tuple[FeatureBit, ...] = (
    FeatureBit(
        10, "virtual-core", "inferred", "formats.md 2.4: the set {10, 11} is sure, which is which rests on order"
    ),
    FeatureBit(11, "v3-2x-4x-dve-perf-mode", "inferred", "formats.md 2.4"),
    FeatureBit(12, "unknown-12", "observed", "formats.md 2.4: set in both nkipy files"),
    FeatureBit(15, "unknown-15", "observed", "formats.md 2.4: set in matmul_small.neff only"),
    FeatureBit(21, "unknown-21", "observed", "formats.md 2.4: set in both nkipy files"),
)
_FEATURE_NAMES = {feature.bit: feature.name for feature in FEATURE_BITS}


def feature_names(bits: int) -> tuple[str, ...]:
    """Return the names of the set feature bits, lowest first; a bit without a known name gives `unknown-<bit>`."""
    return tuple(_FEATURE_NAMES.get(bit, f"unknown-{bit}") for bit in range(64) if bits >> bit & 1)


class Header(NamedTuple):
    """The header of a NEFF, sizes in bytes.

    Text ends at its first NUL. `tpb_per_node` and `pad` have lost their trailing zeros. Source: formats.md 2.1.
    """

    pkg_version: int
    header_size: int
    data_size: int
    neff_version_major: int
    neff_version_minor: int
    neff_build_version: str
    num_tpb: int
    hash: bytes
    uuid: bytes
    name: str
    requested_tpb_count: int
    tpb_per_node: tuple[int, ...]
    feature_bits: int
    lnc_size: int
    pad: bytes = b""

    @property
    def neff_version(self) -> tuple[int, int]:
        """Return (major, minor)."""
        return self.neff_version_major, self.neff_version_minor

    @property
    def features(self) -> tuple[str, ...]:
        """Return the names of the set feature bits."""
        return feature_names(self.feature_bits)

    def encode(self) -> bytes:
        """Return the 1024 bytes.

        Raises FormatError where a value does not fit its field.
        """
        try:
            return _LAYOUT.pack(
                self.pkg_version,
                self.header_size,
                self.data_size,
                self.neff_version_major,
                self.neff_version_minor,
                _text(self.neff_build_version, 128, "neff_build_version"),
                self.num_tpb,
                _exact(self.hash, 32, "hash"),
                _exact(self.uuid, 16, "uuid"),
                _text(self.name, 256, "name"),
                self.requested_tpb_count,
                _fits(bytes(self.tpb_per_node), 64, "tpb_per_node"),
                self.feature_bits,
                self.lnc_size,
                _fits(self.pad, 468, "pad"),
            )
        except (struct.error, ValueError, TypeError) as error:
            if isinstance(error, FormatError):
                raise
            raise FormatError(f"header value does not fit its field ({error})") from None

    @classmethod
    def parse(cls, data: bytes, path: str | None = None) -> Header:
        """Return the header at the start of `data`.

        Raises FormatError when there are fewer than 1024 bytes or the header's own size is impossible.
        """
        if len(data) < HEADER_SIZE:
            raise FormatError(
                "NEFF header is cut off", path=path, offset=len(data), expected=f"{HEADER_SIZE} bytes", got=len(data)
            )
        (pkg, size, data_size, major, minor, build, tpb, digest, uuid, name, requested, nodes, bits, lnc, pad) = (
            _LAYOUT.unpack_from(data)
        )
        if not HEADER_SIZE <= size <= MAX_HEADER_SIZE:
            # The size field stands in for the magic number that NEFF does not have.
            raise FormatError("not a NEFF", path=path, offset=8, field="header_size", expected=HEADER_SIZE, got=size)
        return cls(
            pkg,
            size,
            data_size,
            major,
            minor,
            _string(build),
            tpb,
            digest,
            uuid,
            _string(name),
            requested,
            tuple(nodes.rstrip(b"\0")),
            bits,
            lnc,
            pad.rstrip(b"\0"),
        )


def header_name(name: str) -> str:
    """Return a name as a header gives it back; FormatError for one that it cannot hold."""
    if len(name) < 64 and name.isascii() and name.isprintable():
        return name  # as nearly all: each letter is a byte of it
    return _string(_text(name, 256, "name"))


def _string(raw: bytes) -> str:
    return printable(raw.split(b"\0", 1)[0].decode("utf-8", "backslashreplace"))


def _text(text: str, size: int, field: str) -> bytes:
    raw = text.encode("utf-8", "backslashreplace")
    if len(raw) >= size:
        # One byte stays for the NUL that ends the text.
        raise FormatError(
            "text is too long for the header", field=field, expected=f"at most {size - 1} bytes", got=len(raw)
        )
    return raw


def _fits(raw: bytes, size: int, field: str) -> bytes:
    if len(raw) > size:
        raise FormatError("too long for the header", field=field, expected=f"at most {size} bytes", got=len(raw))
    return raw


def _exact(raw: bytes, size: int, field: str) -> bytes:
    if len(raw) != size:
        raise FormatError("wrong length", field=field, expected=f"{size} bytes", got=len(raw))
    return raw
