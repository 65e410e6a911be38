"""Instructions and their declarations as plain data: numbers, strings, lists and objects, ready for JSON."""

from __future__ import annotations

from formats.isa.declared import Declared
from formats.isa.enums import UpdateMode, WaitMode
from formats.isa.field import Immediate, Json
from formats.isa.operand import Pattern, Pointer
from formats.isa.sync import Update, Wait, update_text, wait_text

__all__ = ["describe_class", "fields_to_json", "update_to_json", "wait_to_json"]


# The header is told as `wait` and `update`; these three say nothing while they have their usual values.
_QUIET = frozenset(("opcode", "length", "flags", "hint"))


def _mode(mode: int, modes: type[WaitMode | UpdateMode]) -> str | int:
    return modes(mode).name if mode in set(modes) else mode


def wait_to_json(wait: Wait) -> dict[str, Json] | None:
    """Return a wait as data; None where there is none."""
    return (
        {"mode": _mode(wait.mode, WaitMode), "index": wait.index, "value": wait.value, "text": wait_text(*wait)}
        if wait
        else None
    )


def update_to_json(update: Update) -> dict[str, Json] | None:
    """Return an update as data; None where there is none."""
    return (
        {
            "mode": _mode(update.mode, UpdateMode),
            "index": update.index,
            "value": update.value,
            "text": update_text(*update),
        }
        if update
        else None
    )


def fields_to_json(word: Declared) -> dict[str, Json]:
    """Return the fields of a word, null where an operand is not in use.

    Enumerations are names where they have one; a float that JSON cannot hold is the string that float() reads.
    """
    raw, fresh = word.raw, word.defaults()
    unused = set()
    for name, operand in word.OPERANDS.items():
        if not operand.enabled(raw):
            unused.add(name)
        elif isinstance(operand, Pointer):
            unused |= {n for n, f in word.FIELDS.items() if isinstance(f, Immediate) and f.offset == operand.offset}
    fields: dict[str, Json] = {}
    for name, field in word.FIELDS.items():
        if name in word.HEADER and (name not in _QUIET or field.peek(raw) == field.peek(fresh) or name == "opcode"):
            continue
        fields[name] = None if name in unused else field.render(field.read(raw))
    return fields


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
