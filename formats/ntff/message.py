"""One protobuf message of an NTFF's metadata: fields by number, asked for by what they should be."""

from __future__ import annotations

from collections.abc import Iterator

from formats.errors import FormatError
from formats.neff.fields import printable
from formats.neff.wire import Value, read_fields

__all__ = ["Message"]


class Message:
    """The fields of one message, by number; what is asked for is what is known."""

    def __init__(self, data: Value, where: str, path: str) -> None:
        if isinstance(data, int):
            raise FormatError("capture metadata is damaged", path=where, field=path, expected="a message", got=data)
        self.where, self.path = where, path
        self.fields: dict[int, list[Value]] = {}
        try:
            for number, value in read_fields(data, where):
                self.fields.setdefault(number, []).append(value)
        except FormatError as error:
            raise FormatError(
                "capture metadata is damaged",
                path=where,
                field=path or "metadata",
                expected=error.expected,
                got=error.got,
            ) from None

    def number(self, field: int, default: int = 0) -> int:
        """Return the last number of a field."""
        value = self.fields.get(field, [default])[-1]
        if not isinstance(value, int):
            raise self.fail(field, "a number", f"{len(value)} bytes")
        return value

    def text(self, field: int) -> str:
        """Return the last text of a field, unprintable characters escaped."""
        value = self.fields.get(field, [b""])[-1]
        if isinstance(value, int):
            raise self.fail(field, "text", value)
        return printable(value.decode("utf-8", "replace"))

    def messages(self, field: int) -> Iterator[Message]:
        """Yield the messages of a field."""
        for value in self.fields.get(field, ()):
            yield Message(value, self.where, f"{self.path}.{field}".lstrip("."))

    def fail(self, field: int, expected: str, got: object) -> FormatError:
        """Return the error that says what a field should have been."""
        return FormatError(
            "capture metadata is damaged",
            path=self.where,
            field=f"{self.path}.{field}".lstrip("."),
            expected=expected,
            got=got,
        )

    def unknown(self, *known: int) -> Iterator[tuple[str, int | str]]:
        """Yield the path and value of every field that is not among the known."""
        for number, values in self.fields.items():
            if number not in known:
                for value in values:
                    path = f"{self.path}.{number}".lstrip(".")
                    yield path, value if isinstance(value, int) else f"{len(value)} bytes"
