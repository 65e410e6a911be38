"""The one error that malformed input raises, whatever the format."""

from __future__ import annotations

from typing import Self

__all__ = ["FormatError", "NeuronError", "NotFoundError", "UnsupportedError"]


class NeuronError(Exception):
    """Root of every error that bad input, and not a bug of ours, can raise.

    Its text never takes command of a terminal: what it quotes may come from a file or from whoever is typing.
    An error in a program names the kind of finding it is (`tool:kind`, as a check gives it) and its file and line.
    """

    finding: str = ""
    place: tuple[str, int] | None = None

    def found(self, kind: str, place: tuple[str, int]) -> Self:
        """Return the error as one in a program: the kind of finding that a check makes of it, and file and line."""
        self.finding, self.place = kind, place
        return self

    def __str__(self) -> str:
        text = super().__str__()
        if text.isprintable():
            return text
        return "".join(c if c == "\n" or c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in text)


class FormatError(NeuronError, ValueError):
    """Malformed input: where it is, what was expected there and what was found.

    `path` names the file or member, `offset` the byte in it, `field` the declared field; each may be None.
    """

    def __init__(
        self,
        what: str,
        *,
        path: str | None = None,
        offset: int | None = None,
        field: str | None = None,
        expected: object = None,
        got: object = None,
    ) -> None:
        self.what, self.path, self.offset, self.field = what, path, offset, field
        self.expected, self.got = expected, got
        super().__init__(self._line())

    def _line(self) -> str:
        offset = None if self.offset is None else f"0x{self.offset:06x}"
        where = [part for part in (self.path, offset, self.field) if part]
        tail = ""
        if self.expected is not None:
            tail += f", expected {self.expected}"
        if self.got is not None:
            tail += f", found {self.got}"
        return ": ".join([*where, self.what + tail]).replace("\n", " ")

    def at(self, path: str | None = None, offset: int | None = None) -> FormatError:
        """Return the same error with a place filled in where it had none."""
        return FormatError(
            self.what,
            path=self.path or path,
            offset=self.offset if self.offset is not None else offset,
            field=self.field,
            expected=self.expected,
            got=self.got,
        )


class UnsupportedError(NeuronError):
    """Something that is understood but not modelled here, and never answered with a guess."""


class NotFoundError(NeuronError, LookupError):
    """A named thing (member, engine, tensor, line) that the input does not have."""
