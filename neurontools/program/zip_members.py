"""Members of a ZIP file under limits: what they claim to be is added up before anything is inflated."""

from __future__ import annotations

import lzma
import struct
import tokenize
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Self

from formats.errors import FormatError
from formats.limits import DEFAULT_LIMITS, need_few
from formats.neff.fields import printable

if TYPE_CHECKING:
    import numpy

__all__ = ["ZipMembers", "damage_is_told"]

# What `zipfile`, `zlib` and NumPy's reader of headers raise for a damaged, encrypted or exotic archive.
_DAMAGE = (zipfile.BadZipFile, zlib.error, lzma.LZMAError, tokenize.TokenError, SyntaxError, ValueError, TypeError,
           EOFError, LookupError, OverflowError, RuntimeError, struct.error, RecursionError)  # fmt: skip
_METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
_BLOCK = 1 << 20
_MOST_DIMENSIONS = 32


@contextmanager
def damage_is_told(where: str, what: str) -> Iterator[None]:
    """Raise one FormatError in place of whatever a damaged file makes `zipfile` and NumPy raise."""
    try:
        yield
    except _DAMAGE as error:
        if isinstance(error, FormatError):
            raise
        # NumPy gives a pair of text and place for some damage.
        reason = str(error.args[0] if error.args else error).split("\n")[0]
        raise FormatError(what, path=where, got=printable(reason)[:200]) from None
    except OSError as error:
        raise FormatError(f"cannot be read ({(error.strerror or str(error)).lower()})", path=where) from None


class ZipMembers:
    """The members of one archive by name; `most` is what all of them may come to, by default what its size allows.

    To be used as a context manager. Raises FormatError for names that stand twice, and for more members and more bytes
    than the limits allow.
    """

    def __init__(self, source: Path | IO[bytes], where: str, size: int, most: int | None = None) -> None:
        self.where = where
        self.most = DEFAULT_LIMITS.arrays_from(size) if most is None else most
        self._archive = zipfile.ZipFile(source)
        infos = self._archive.infolist()
        self._infos = {info.filename: info for info in infos}
        need_few(len(infos), DEFAULT_LIMITS.members, "members", where)
        if len(self._infos) < len(infos):
            raise FormatError("a member stands in it twice", path=where)
        odd = next((name for name in self._infos if not name.isprintable()), None)
        if odd is not None:
            raise FormatError("name of a member is not for printing", path=where, got=printable(odd)[:80])
        total = sum(info.file_size for info in infos)
        if total > self.most:
            raise FormatError("members are over the size limit", path=where, expected=f"at most {self.most:,} bytes",
                              got=f"{total:,}")  # fmt: skip

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._archive.close()

    @property
    def names(self) -> list[str]:
        """Return the names in order."""
        return list(self._infos)

    def read(self, name: str, most: int | None = None) -> bytes:
        """Return a member whole; FormatError where there is none, or it is larger than `most`."""
        info = self._info(name)
        if most is not None and info.file_size > most:
            raise FormatError("member is over the size limit", path=self.where, field=name,
                              expected=f"at most {most:,} bytes", got=f"{info.file_size:,}")  # fmt: skip
        return self._archive.read(info)

    def array(self, name: str) -> numpy.ndarray[Any, Any]:
        """Return the array in a member; its header is checked against the member's size before anything is made."""
        import numpy as np

        from emulator.large_arrays import Store  # deferred: start-up

        info = self._info(name)
        with self._archive.open(info) as file:
            version = np.lib.format.read_magic(file)
            if version == (1, 0):
                shape, fortran, dtype = np.lib.format.read_array_header_1_0(file)
            else:  # 3.0 differs in how names of fields are written, and fields are refused
                shape, fortran, dtype = np.lib.format.read_array_header_2_0(file)
            left = info.file_size - file.tell()
            if dtype.hasobject or dtype.names is not None or dtype.subdtype is not None or not dtype.itemsize:
                raise FormatError("not an .npz of plain arrays", path=self.where, field=name, got=str(dtype)[:80])
            claimed = dtype.itemsize
            for extent in shape:
                claimed *= extent
            if len(shape) > _MOST_DIMENSIONS or min(shape, default=0) < 0 or claimed != left:
                shown = f"{dtype}{list(shape)[:_MOST_DIMENSIONS]}"
                raise FormatError("array and its bytes do not fit", path=self.where, field=name, expected=shown,
                                  got=f"{left:,} bytes")  # fmt: skip
            data = Store(left)
            while left:
                block = file.read(min(_BLOCK, left))
                if not block:
                    raise FormatError("array is cut off", path=self.where, field=name)
                data.write(block)
                left -= len(block)
            file.read(1)  # at the end the checksum is compared
        return data.array().view(dtype).reshape(shape, order="F" if fortran else "C")

    def _info(self, name: str) -> zipfile.ZipInfo:
        info = self._infos.get(name)
        if info is None:
            raise FormatError("member is missing", path=self.where, field=name)
        if info.compress_type not in _METHODS:
            raise FormatError("member is packed in a way of its own", path=self.where, field=name)
        return info
