"""Declarations of instructions as plain data: numbers, strings, lists and objects, ready for JSON."""

from __future__ import annotations

from formats.isa.declared import Declared
from formats.isa.field import Json
from formats.isa.operand import Pattern, Pointer

__all__ = ["describe_class"]


def describe_class(cls: type[Declared], syntax: str) -> dict[str, Json]:
    """Return a class's declaration, with the grammar of its text: what `neuron-isa(7)` and `explain` show."""
    fields: list[Json] = []
    for name, field in cls.FIELDS.items():
        row: dict[str, Json] = {
            "name": name,
            "kind": field.kind,
            "offset": field.offset,
            "size": field.size,
            "mask": hex(field.mask >> (8 * field.offset)),
            "doc": field.doc,
            "unit": field.unit,
            "cite": field.cite or cls.CITE,
            "provenance": field.provenance,
        }
        if isinstance(field, Pattern | Pointer):
            row["role"] = field.role
        fields.append(row)
    doc = " ".join((cls.__doc__ or "").split())
    return {
        "name": cls.NAME,
        "opcode": cls.OPCODE,
        "code": None if cls.CODE < 0 else cls.CODE,
        "bytes": cls.SIZE,
        "engines": list(cls.ENGINES),
        "generations": list(cls.GENERATIONS),
        "dialect": cls.DIALECT,
        "summary": doc,
        "syntax": syntax,
        "cite": cls.CITE,
        "provenance": cls.PROVENANCE,
        "fields": fields,
    }
