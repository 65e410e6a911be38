"""Names of dump directories and files, and the variables in paths: documented forms, back and forth."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from formats.nrt import names

QUICKSTART = "dt-20250917-194443-cid-0000000000000000"


def test_the_quickstart_directory() -> None:
    found = names.parse_directory(QUICKSTART)
    assert found == names.DirectoryName("0" * 16, datetime(2025, 9, 17, 19, 44, 43, tzinfo=UTC))


@pytest.mark.parametrize(
    ("text", "moment"),
    [
        ("2025-09-17-19-44", datetime(2025, 9, 17, 19, 44, tzinfo=UTC)),  # the flag's documented form
        ("20250917-194443", datetime(2025, 9, 17, 19, 44, 43, tzinfo=UTC)),  # the example directory's
        ("2025-13-17-19-44", None),
        ("", None),
    ],
)
def test_both_forms_of_a_time(text: str, moment: datetime | None) -> None:
    assert names.parse_time(text) == moment


def test_times_are_written_as_documented() -> None:
    moment = datetime(2025, 9, 17, 19, 44, 43, tzinfo=UTC)
    assert names.time_in_flag(moment) == "2025-09-17-19-44"
    assert names.time_in_path(moment) == "20250917-194443"


@pytest.mark.parametrize(
    ("name", "kind", "core"),
    [
        ("i-0b514eadc4fec7de6-nd0-nc0-pid-897-tid-897-lid-0", "core", 0),
        ("i-0b514eadc4fec7de6-nd15-nc7-pid-897-tid-898-lid-2", "core", 7),
        ("i-0b514eadc4fec7de6-nd0-cc-core-3-pid-897-tid-897-lid-0", "cc-core", 3),
        ("i-0b514eadc4fec7de6-nrt-pid-897.log", "log", -1),
        ("i-0b514eadc4fec7de6-neuron-dump-pid-897-tid-897-lid-0.json", "manifest", -1),
    ],
)
def test_documented_file_names(name: str, kind: str, core: int) -> None:
    found = names.parse_file(name)
    assert found is not None
    assert (found.kind, found.instance, found.pid, found.core) == (kind, "i-0b514eadc4fec7de6", 897, core)
    assert str(found) == name


def test_the_other_form_of_a_log_name_is_read_too() -> None:
    found = names.parse_file("nrt-i-0b51-pid-897.log")
    assert found is not None and (found.kind, found.instance, found.pid) == ("log", "i-0b51", 897)


@pytest.mark.parametrize("name", ["", "core", "i-1-nd0-nc0", "i-1-nd0-nc0-pid-1-tid-1-lid-0.tmp", "a/nrt-b-pid-1.log"])
def test_other_names_are_none_of_ours(name: str) -> None:
    assert names.parse_file(name) is None


@given(
    st.from_regex(r"i-[0-9a-f]{4,17}", fullmatch=True),
    st.tuples(*[st.integers(0, 10**9)] * 5),
    st.sampled_from(["core", "cc-core", "log", "manifest"]),
)
def test_names_come_back(instance: str, numbers: tuple[int, int, int, int, int], kind: str) -> None:
    pid, tid, log_id, device, core = numbers
    name = names.FileName(kind, instance, pid, tid, log_id, device, core)
    again = names.parse_file(str(name))
    assert (
        again is not None
        and str(again) == str(name)
        and (again.kind, again.instance, again.pid)
        == (
            kind,
            instance,
            pid,
        )
    )


def test_path_variables() -> None:
    values = dict(zip("dcptli", ("T", "C", 1, 2, 3, "i-9"), strict=True))
    assert names.expand("/base/%d-%c/%p.%t.%l.%i", values) == "/base/T-C/1.2.3.i-9"
    assert names.expand("100%/%%/%z/%", values) == "100%/%%/%z/%"  # what is no variable stays
    assert names.expand("%i", {"i": "a/b"}) == "a-b"  # a value is one component
    assert set(values) == set(names.PATH_VARIABLES)


@given(st.text(max_size=80))
def test_any_text_is_answered(text: str) -> None:
    names.parse_file(text)
    names.parse_directory(text)
    names.parse_time(text)
    assert names.expand(text, {}) == text
