"""Any bytes are a value or a FormatError: every truncation, and 10,000 seeded mutations, in bounded time and memory."""

from __future__ import annotations

import random
import resource
import time
import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from formats.errors import FormatError
from formats.neff import open_neff

from .support import SMALL, bare, contents, exercise, fixture, plain_tar, wrapped

SEED = 20_260_821


def test_every_truncation_of_the_file() -> None:
    """Behind the gzip stream only zeros are cut off: there the members must still be readable."""
    data = fixture()
    end = 1024 + open_neff(data).archive.stream_length
    for length in range(end):
        assert exercise(data[:length]) == "refused", length
    for length in range(end, len(data) + 1):
        assert exercise(data[:length], deep=False) == "read", length
    assert exercise(data[:end]) == "read"


def test_every_eighth_truncation_of_a_bare_tar() -> None:
    """The lengths include both sides of every header, because members start at multiples of 512."""
    data = bare()
    outcomes = [exercise(data[:length], deep=length % 4096 < 8) for length in range(0, len(data), 8)]
    assert {"read", "refused"} == set(outcomes)


def mutated(data: bytes, random_: random.Random, low: int = 0) -> bytes:
    out = bytearray(data)
    for _ in range(random_.choice((1, 1, 1, 2, 8))):
        at = random_.randrange(low, len(out))
        kind = random_.randrange(5)
        if kind == 0:
            out[at] ^= 1 << random_.randrange(8)
        elif kind == 1:
            out[at] = random_.choice(b'\x00\xff\x7f\x80"[]{}0-9,:')
        elif kind == 2:
            del out[at : at + random_.randrange(1, 9)]
        elif kind == 3:
            out[at:at] = random_.randbytes(random_.randrange(1, 9))
        else:
            out[at : at + 4] = random_.randbytes(4)
        if len(out) <= low + 1:
            break
    return bytes(out)


def cases() -> list[bytes]:
    """Return 10,000 damaged files: of the file as it is, and of single members in a file that is otherwise whole."""
    random_ = random.Random(SEED)
    whole, tar = fixture(), bare()
    found = [mutated(whole, random_) for _ in range(3000)]
    found += [mutated(whole[:1024], random_)[:1024].ljust(1024, b"\0") + whole[1024:] for _ in range(1000)]
    found += [mutated(tar, random_) for _ in range(1000)]
    files = contents(whole)
    # Tables are where the parsers are; a member is chosen before a place in it, so that small ones get their share.
    names = [name for name in files if files[name]]
    for _ in range(5000):
        name = random_.choice(names)
        found.append(wrapped(plain_tar({**files, name: mutated(files[name], random_)})))
    return found


def test_ten_thousand_mutations() -> None:
    damaged = cases()
    assert len(damaged) == 10_000
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    outcomes = {"read": 0, "refused": 0}
    slowest = 0.0
    for data in damaged:
        start = time.process_time()
        outcomes[exercise(data)] += 1
        slowest = max(slowest, time.process_time() - start)
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    assert outcomes["read"] > 500 and outcomes["refused"] > 3000, outcomes
    assert slowest < 10, f"one file took {slowest:.1f} s"
    assert grown < 64 << 10, f"{grown} KiB more than before"


def test_mutated_archive_inside_a_whole_gzip_stream() -> None:
    """gzip's checksum hides the tar from byte damage; here the stream is right and the tar is not."""
    random_ = random.Random(SEED + 1)
    tar = bare()[1024:]
    for _ in range(300):
        stream = zlib.compressobj(1, zlib.DEFLATED, 31)
        exercise(wrapped(stream.compress(mutated(tar, random_)) + stream.flush()))


def test_names_never_reach_a_terminals_controls() -> None:
    files = {**contents(fixture()), "sg00/\x1b[2J": b""}
    neff = open_neff(wrapped(plain_tar(files)))
    assert all(member.name.isprintable() for member in neff.members)
    assert all(p.message.isprintable() and p.where.isprintable() for p in neff.verify())
    text = contents(fixture())["sg00/def.json"].replace(b'"spill"', b'"\\u001b[2J\\ud800"')
    graph = open_neff(wrapped(plain_tar({**contents(fixture()), "sg00/def.json": text}))).subgraphs[0]
    assert "\\x1b[2J\\ud800" in graph.variables


def test_json_that_would_blow_up_is_refused_by_its_size() -> None:
    text = b'{"var": [' + b"[]," * 400_000 + b"[]]}"
    data = wrapped(plain_tar({**contents(fixture()), "sg00/def.json": text}))
    tight = SMALL._replace(parsed_floor=1 << 20, parsed_ratio=0)
    with pytest.raises(FormatError, match="over the size limit"):
        open_neff(data, tight).subgraphs[0].definition.name.strip()
    with pytest.raises(FormatError, match="expected an object"):
        open_neff(data).subgraphs[0].definition.name.strip()


@given(st.binary(max_size=200))
def test_any_bytes_behind_a_header(data: bytes) -> None:
    assert exercise(wrapped(data)) == "refused"
    assert exercise(data) == "refused"


@pytest.mark.parametrize(
    "name", ["sg00/def.json", "sg00/SP.json", "neff.json", "kelf-0.json", "sg00/exp_and_more.json"]
)
@pytest.mark.parametrize(
    "text", [b"", b"null", b"{}", b"[]", b'{"a"', b"1e999", b'{"var": null}', b'{"nodes": [1]}', b"\xff\xfe"]
)
def test_other_json(name: str, text: bytes) -> None:
    exercise(wrapped(plain_tar({**contents(fixture()), name: text})))
