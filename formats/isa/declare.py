"""Checks of a declaration, made when an instruction class is made: nothing overlaps, nothing is left unexplained."""

from __future__ import annotations

import re
from typing import Any

from formats.dtypes import Dtype
from formats.engines import ENGINES
from formats.isa.behaviour import Dataflow, EngineState, Passes
from formats.isa.declared import Declared
from formats.isa.field import Enumeration, Field, Immediate
from formats.isa.operand import Pattern, Pointer
from formats.isa.syntax import Item
from formats.neuron_core import GENERATIONS, WORD

__all__ = ["PROVENANCES", "check_declaration"]

PROVENANCES = ("documented", "observed", "inferred", "ours")
_NAME = re.compile(r"[A-Z][A-Z0-9_]*")


def check_declaration(cls: type[Declared], syntax: tuple[Item, ...]) -> None:
    """Raise TypeError for a declaration that overlaps itself, leaves the word, or lacks words for what it declares."""
    if not _NAME.fullmatch(cls.NAME):
        raise TypeError(f"{cls.__name__}: NAME is not in capitals")
    if not (cls.__doc__ or "").strip():
        raise TypeError(f"{cls.__name__} has no docstring")
    if cls.PROVENANCE not in PROVENANCES:
        raise TypeError(f"{cls.__name__}: provenance {cls.PROVENANCE!r} is none of the four")
    if not cls.ENGINES or not set(cls.ENGINES) <= set(ENGINES):
        raise TypeError(f"{cls.__name__}: ENGINES {cls.ENGINES}")
    if not cls.GENERATIONS or not set(cls.GENERATIONS) <= set(GENERATIONS):
        raise TypeError(f"{cls.__name__}: GENERATIONS {cls.GENERATIONS}")
    if cls.SIZE % WORD or not cls.SIZE or (cls.CODE < 0 and cls.SIZE != WORD):
        raise TypeError(f"{cls.__name__}: a word of {cls.SIZE} bytes")
    _check_fields(cls)
    for name, operand in cls.OPERANDS.items():
        _check_operand(cls, name, operand)
    _check_behaviour(cls)
    _check_syntax(cls, syntax)


# Fields by which those who follow data through a word know where they go.
_NEEDED = {
    Dataflow.CHOICE: ("predicate",),
    Dataflow.PERMUTATION: ("mask",),
    Dataflow.TRANSPOSE: ("channels", "columns"),
    Dataflow.GATHER: ("indices", "group"),
    Dataflow.SCATTER: ("indices", "group"),
}


def _check_behaviour(cls: type[Declared]) -> None:
    needed = [*_NEEDED.get(cls.DATAFLOW, ()), *((cls.FILL,) if cls.FILL else ())]
    if cls.STATE is EngineState.OPTIONAL:
        needed.append("reduce_command")
    if isinstance(cls.COST, Passes):
        needed += [cls.COST.over, *cls.COST.slowed_by]
    for name in needed:
        if name not in cls.FIELDS:
            raise TypeError(f"{cls.__name__}: what it does needs a field {name}")


def _check_fields(cls: type[Declared]) -> None:
    taken = 0
    aliases: list[Field[Any]] = []
    for name, field in cls.FIELDS.items():
        if field.offset < 0 or field.offset + field.size > cls.SIZE:
            raise TypeError(f"{cls.__name__}.{name} ends after the word")
        if not field.doc or not (field.cite or cls.CITE):
            raise TypeError(f"{cls.__name__}.{name} has no doc or no cite")
        if field.provenance not in PROVENANCES:
            raise TypeError(f"{cls.__name__}.{name}: provenance {field.provenance!r} is none of the four")
        # An alias is a second reading of bits that another field owns (a number or a pointer to it); only owners may
        # not overlap.
        if field.alias:
            aliases.append(field)
            continue
        if taken & field.mask:
            raise TypeError(f"{cls.__name__}.{name} overlaps another field")
        taken |= field.mask
        if isinstance(field, Immediate) and field.integer not in cls.FIELDS.values():
            raise TypeError(f"{cls.__name__}.{name}: its integer flag is not a field of the word")
    for field in aliases:
        if field.mask & ~taken:
            raise TypeError(f"{cls.__name__}.{field.name} is an alias of bits that no field has")
    # bytes 12 to 15 of an extension word hold its code and its length, which no field declares
    if cls.CODE >= 0 and taken >> 96 & 0xFFFFFFFF:
        raise TypeError(f"{cls.__name__} uses the extension header")


def _check_operand(cls: type[Declared], name: str, operand: Pattern | Pointer) -> None:
    for needed in (operand.dtype, operand.partitions):
        if not isinstance(needed, Dtype) and needed not in cls.FIELDS:
            raise TypeError(f"{cls.__name__}.{name}: operand needs field {needed}")
    if operand.role not in ("read", "write", "readwrite", "remote"):
        raise TypeError(f"{cls.__name__}.{name}: role {operand.role!r}")
    if isinstance(operand.lanes, str) and operand.lanes not in cls.FIELDS:
        raise TypeError(f"{cls.__name__}.{name}: no field {operand.lanes} holds its lanes")
    flag = operand.flag if isinstance(operand, Pointer) else None
    if flag is not None and flag not in cls.FIELDS.values():
        raise TypeError(f"{cls.__name__}.{name}: its flag is not a field of the word")


def _check_syntax(cls: type[Declared], syntax: tuple[Item, ...]) -> None:
    spoken: dict[str, int] = {}
    for item in syntax:
        for name in item.covers(cls):
            if name not in cls.FIELDS:
                raise TypeError(f"{cls.__name__}: the syntax names no field {name}")
            # One element type may complete several patterns; anything else is printed once.
            if name in spoken and not (
                isinstance(cls.FIELDS[name], Enumeration) and any(p.dtype == name for p in cls.OPERANDS.values())
            ):
                raise TypeError(f"{cls.__name__}.{name} stands twice in the syntax")
            spoken[name] = 1
        # Text without the item reads back as the class's default, so only a default of zero can be left out for zero.
        if (optional := item.optional_field()) and cls.FIELDS[optional].default:
            raise TypeError(f"{cls.__name__}.{optional} is left out when zero, so its default must be zero")
