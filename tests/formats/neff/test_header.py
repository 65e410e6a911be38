"""The 1024-byte header: published vectors, both ways, and what is refused."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from formats.errors import FormatError
from formats.neff import HEADER_SIZE, Header, feature_names, open_neff
from formats.neff.hashing import HASH_VARIANTS, hash_field, matching_variant, swap_words

from .support import fixture

u64, u32 = st.integers(0, 2**64 - 1), st.integers(0, 2**32 - 1)
text = st.text(st.characters(min_codepoint=0x20, max_codepoint=0x7E), max_size=100)
nodes = st.lists(st.integers(0, 255), max_size=64).map(lambda v: tuple(bytes(v).rstrip(b"\0")))
headers = st.builds(
    Header,
    u64,
    st.integers(1024, 1 << 20),
    u64,
    u64,
    u64,
    text,
    u32,
    st.binary(min_size=32, max_size=32),
    st.binary(min_size=16, max_size=16),
    text,
    u32,
    nodes,
    u64,
    u32,
    st.binary(max_size=468).map(lambda v: v.rstrip(b"\0")),
)


@given(headers)
def test_encode_and_parse_are_inverse(header: Header) -> None:
    raw = header.encode()
    assert len(raw) == HEADER_SIZE
    assert Header.parse(raw) == header


def test_published_vectors(reference_data: Path) -> None:
    vectors = json.loads((reference_data / "neff_header_vectors.json").read_text())["files"]
    assert len(vectors) == 6
    for vector in vectors:
        raw = bytes.fromhex(vector["header_hex"]).ljust(HEADER_SIZE, b"\0")
        header, fields = Header.parse(raw), vector["fields"]
        assert header.encode() == raw
        assert list(header.neff_version) == fields["neff_version"]
        assert (header.hash.hex(), header.uuid.hex()) == (fields["hash"], fields["uuid"])
        assert list(header.tpb_per_node) == fields["tpb_per_node"]
        for name in (
            "pkg_version",
            "header_size",
            "data_size",
            "neff_build_version",
            "num_tpb",
            "name",
            "requested_tpb_count",
            "feature_bits",
            "lnc_size",
        ):
            assert getattr(header, name) == fields[name], name
        assert header.data_size == vector["file_size"] - HEADER_SIZE
        assert header.hash[:16] == swap_words(bytes.fromhex(vector["hash"]["md5_of_data"]))


def test_feature_names() -> None:
    assert feature_names(0xC00) == ("virtual-core", "v3-2x-4x-dve-perf-mode")
    assert feature_names(1 << 63 | 1 << 12) == ("unknown-12", "unknown-63")
    assert feature_names(0) == ()


@pytest.mark.parametrize("length", [0, 1, 1023])
def test_short_header_is_refused(length: int) -> None:
    with pytest.raises(FormatError, match=f"cut off.*1024 bytes, found {length}"):
        open_neff(fixture()[:length])


@pytest.mark.parametrize("size", [0, 1023, (1 << 20) + 1, 2**64 - 1])
def test_impossible_header_size_is_no_neff(size: int) -> None:
    data = bytearray(fixture())
    data[8:16] = size.to_bytes(8, "little")
    with pytest.raises(FormatError, match="not a NEFF"):
        open_neff(bytes(data))


def test_header_longer_than_the_file_is_refused() -> None:
    data = bytearray(fixture())
    data[8:16] = (len(data) + 1).to_bytes(8, "little")
    with pytest.raises(FormatError, match="cut off"):
        open_neff(bytes(data))


@pytest.mark.parametrize(
    "change",
    [
        {"name": "x" * 256},
        {"pad": bytes(469)},
        {"hash": b""},
        {"uuid": bytes(17)},
        {"num_tpb": -1},
        {"tpb_per_node": (256,)},
        {"tpb_per_node": (1,) * 65},
        {"data_size": 1 << 64},
    ],
)
def test_values_that_do_not_fit_are_refused(change: dict[str, object]) -> None:
    with pytest.raises(FormatError):
        Header.parse(fixture())._replace(**change).encode()  # type: ignore[arg-type]


@pytest.mark.parametrize("variant", HASH_VARIANTS)
def test_every_hash_variant_is_recognised(variant: str) -> None:
    assert matching_variant(hash_field(variant, [b"da", b"ta"]), b"data") == variant


def test_foreign_hash_is_no_variant() -> None:
    assert matching_variant(bytes(31) + b"\1", b"data") is None
    with pytest.raises(FormatError, match="unknown hash variant"):
        hash_field("crc32", [b""])


def test_word_swap_is_the_published_example() -> None:
    # formats.md 2.3: md5 efe9b3bc 98163077 is stored as bcb3e9ef 77301698.
    assert swap_words(bytes.fromhex("efe9b3bc98163077")).hex() == "bcb3e9ef77301698"
