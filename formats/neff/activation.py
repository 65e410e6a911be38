"""Activation tables: which functions a subgraph uses, their codes, and the piecewise cubics that compute them.

Source: formats.md 3.8 and 3.10 (inferred, checked numerically on public files of two targets).
"""

from __future__ import annotations

import re
import struct
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar, overload

from formats.errors import FormatError
from formats.named_tuple import NamedTuple
from formats.neff.fields import Fields

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

__all__ = [
    "ActivationFunction",
    "ActivationInfo",
    "ActivationInfoSet",
    "ActivationSet",
    "Bucket",
    "Buckets",
    "Control",
    "Controls",
    "function_name",
    "parse_act_info",
    "parse_activation_set",
]

# bytes of an entry of either table (formats.md 3.10)
_ENTRY = 32
_Entry = TypeVar("_Entry")
_PIECES = re.compile(r"(.+)_(\d{1,9})p")


class Bucket(NamedTuple):
    """One cubic piece: value = d0 + t·(d1 + t·(d2 + t·d3)) with t = x − x0, all float32."""

    d0: float
    d1: float
    d2: float
    d3: float
    x0: float


class Control(NamedTuple):
    """Where the buckets of one exponent are: first bucket, shift right of the 23 mantissa bits, log2 of their count."""

    bucket: int
    shift: int
    log2_count: int


class _Table(Sequence[_Entry]):
    """The entries of a table, decoded one by one."""

    # Bits of an entry that mean something (formats.md 3.10).
    KNOWN: ClassVar[int]

    def __init__(self, data: bytes, where: str) -> None:
        if len(data) % _ENTRY:
            raise FormatError(
                "activation table is not a whole number of entries",
                path=where,
                expected=f"a multiple of {_ENTRY}",
                got=len(data),
            )
        self.data, self.where = data, where

    def __len__(self) -> int:
        return len(self.data) // _ENTRY

    @overload
    def __getitem__(self, index: int) -> _Entry: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[_Entry, ...]: ...
    def __getitem__(self, index: int | slice) -> _Entry | tuple[_Entry, ...]:
        places = range(len(self))[index]
        if isinstance(places, range):
            return tuple(self._at(place) for place in places)
        return self._at(places)

    @abstractmethod
    def _at(self, place: int) -> _Entry:
        """Return the entry at a place."""

    def unknown_entry(self) -> int | None:
        """Return the first entry with a bit set that nothing is known of, None where there is none."""
        unknown = ~self.KNOWN
        for place in range(0, len(self.data), _ENTRY):
            if int.from_bytes(self.data[place : place + _ENTRY], "little") & unknown:
                return place // _ENTRY
        return None


class Buckets(_Table[Bucket]):
    """The entries of a `*_bkt.bin`."""

    KNOWN = (1 << 8 * 20) - 1

    def _at(self, place: int) -> Bucket:
        return Bucket(*struct.unpack_from("<5f", self.data, place * _ENTRY))

    def array(self) -> npt.NDArray[np.float32]:
        """Return all entries as (n, 5) float32: d0, d1, d2, d3, x0."""
        import numpy as np

        return np.frombuffer(self.data, dtype="<f4").reshape(-1, _ENTRY // 4)[:, :5].astype(np.float32)


class Controls(_Table[Control]):
    """The entries of a `*_ctrl.bin`."""

    KNOWN = 0xFFFFF

    def _at(self, place: int) -> Control:
        word = int.from_bytes(self.data[place * _ENTRY : place * _ENTRY + 4], "little")
        # bits 10 to 0: first bucket, 15 to 11: shift, 19 to 16: log2 of the count (formats.md 3.10)
        return Control(word & 0x7FF, word >> 11 & 0x1F, word >> 16 & 0xF)


class ActivationFunction(NamedTuple):
    """One function of a set: the code that ACTIVATE words carry, its name, and its profile.

    `pieces` is 0 for functions that have a name but no table (files of ours: closed form). `profile` holds the whole
    numbers of `profile_meta_data` by their own keys; thresholds are float32 exponents and mantissas, results are bit
    patterns of float32.
    """

    func_id: int
    name: str
    set_name: str
    pieces: int
    profile: Mapping[str, int]

    @property
    def has_table(self) -> bool:
        """Return whether the file carries what is needed to compute the function."""
        return self.pieces > 0 and "pwl_control_base_pos" in self.profile


class ActivationSet(NamedTuple):
    """One set of functions that are loaded together; ACT_TABLE_LOAD words load it by its `table_select`."""

    name: str
    table_select: int
    functions: tuple[ActivationFunction, ...]
    buckets: Buckets
    controls: Controls
    bucket_starts: Mapping[str, int]
    member: str = ""
    raw: Mapping[str, Any] = {}


class ActivationInfoSet(NamedTuple):
    """One set that `act_info.json` knows; its files are in the archive only where the set is used."""

    name: str
    bucket_file: str
    control_file: str
    profile_file: str
    functions: Mapping[str, int]


class ActivationInfo(NamedTuple):
    """What `act_info.json` says: all sets, with pieces per function."""

    file_keys: tuple[str, ...]
    sets: tuple[ActivationInfoSet, ...]

    def find(self, name: str) -> ActivationInfoSet | None:
        """Return the set of a name."""
        return next((item for item in self.sets if item.name == name), None)


def function_name(text: str) -> tuple[str, int]:
    """Return name and pieces of a table's `func_name`: ("exp", 400) for "exp_400p"."""
    match = _PIECES.fullmatch(text)
    return (match[1], int(match[2])) if match else (text, 0)


def parse_act_info(fields: Fields) -> ActivationInfo:
    """Return what `act_info.json` says."""
    sets = []
    for item in fields.objects("act_func_sets"):
        functions = item.object("act")
        sets.append(
            ActivationInfoSet(
                item.text("name"),
                item.text("bkt_bin", ""),
                item.text("ctrl_bin", ""),
                item.text("profile_json", ""),
                {name: functions.integer(name) for name in functions.raw},
            )
        )
    return ActivationInfo(fields.texts("pwp_file_keys"), tuple(sets))


def parse_activation_set(
    name: str, table_select: int, fields: Fields, buckets: Buckets, controls: Controls
) -> ActivationSet:
    """Return a set from its `<set>.json` and its two tables.

    Raises FormatError where the stated number of entries is not the tables' own, or two functions share a code.
    """
    for key, table in (("bkt_entry_cnt", buckets), ("ctl_entry_cnt", controls)):
        # a count that is left out cannot be wrong
        if fields.integer(key, len(table)) != len(table):
            raise FormatError(
                "activation table has another length than stated",
                path=fields.where,
                field=key,
                expected=fields.integer(key),
                got=len(table),
            )
    starts = fields.object("func_to_bkt_start_idx")
    functions: dict[int, ActivationFunction] = {}
    for item in fields.objects("profile_meta_data"):
        function = _function(name, item)
        if function.func_id in functions:
            raise FormatError(
                "two activation functions share a code", path=fields.where, field="func_id", got=function.func_id
            )
        functions[function.func_id] = function
    return ActivationSet(
        name,
        table_select,
        tuple(functions.values()),
        buckets,
        controls,
        {key: starts.integer(key) for key in starts.raw},
        fields.where,
        fields.raw,
    )


def _function(set_name: str, fields: Fields) -> ActivationFunction:
    name, pieces = function_name(fields.text("func_name"))
    numbers: dict[str, int] = {}
    for key, value in fields.raw.items():
        if isinstance(value, int):  # true and false count as 1 and 0
            numbers[key] = int(value)
    return ActivationFunction(fields.integer("func_id"), name, set_name, pieces, numbers)
