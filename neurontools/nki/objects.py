"""`nl.NKIObject`: base of configuration classes in kernels, with a constructor as forgiving as real kernels need."""

from __future__ import annotations

import dataclasses
import inspect
from typing import Any
from weakref import WeakKeyDictionary

__all__ = ["NKIObject"]

_assign = object.__setattr__  # also where the class is a frozen dataclass

# By class, with its dataclass fields: the decorator may come behind the first look. Kernels make such objects by the
# hundred, and classes of a script go with it.
_known: WeakKeyDictionary[type, tuple[object, dict[str, Any]]] = WeakKeyDictionary()


def _fields(cls: type) -> dict[str, Any]:
    """Return annotated names in order, oldest base first, each with what makes its default value, or None."""
    declared = getattr(cls, "__dataclass_fields__", None)
    known = _known.get(cls)
    if known is not None and known[0] is declared:
        return known[1]
    names: dict[str, Any] = {}
    for base in reversed(cls.__mro__):
        for name in inspect.get_annotations(base):
            names[name] = None
    for name, field in (declared or {}).items():
        is_made = isinstance(field, dataclasses.Field) and field.default_factory is not dataclasses.MISSING
        names[name] = field.default_factory if is_made else None
    _known[cls] = declared, names
    return names


def _lenient_init(self: Any, *args: Any, **kwargs: Any) -> None:
    """Assign fields by position or name, keywords for plain class attributes too; None to fields that are left out.

    nki-library does both (nki.md 0, finding 3); frozen dataclasses assign through `object.__setattr__`.
    """
    cls = type(self)
    names = _fields(cls)
    if len(args) > len(names):
        raise TypeError(f"{cls.__name__} takes {len(names)} positional arguments but {len(args)} were given")
    if not args and kwargs.keys() <= names.keys():  # the usual case
        values = kwargs
    else:
        values = dict(zip(names, args, strict=False))
        for name, value in kwargs.items():
            if name in values:
                raise TypeError(f"{cls.__name__} got two values for {name!r}")
            if name not in names and not hasattr(cls, name):
                raise TypeError(f"{cls.__name__} has no field {name!r}")
            values[name] = value
    if values.keys() != names.keys():
        for name, make in names.items():
            if name not in values:
                values[name] = getattr(cls, name, None) if make is None else make()
    for name, value in values.items():
        _assign(self, name, value)
    finish = getattr(self, "__post_init__", None)
    if finish is not None:
        finish()


class NKIObject:
    """Base class of kernel dataclasses and configuration objects."""

    __slots__ = ()

    def __init__(self, **kwargs: Any) -> None:
        for name, value in kwargs.items():
            setattr(self, name, value)

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        # `@dataclass` keeps an __init__ that stands in the class, so installing it here is enough. A class below one
        # that wrote its own __init__ keeps that one.
        if "__init__" not in cls.__dict__ and cls.__init__ in (NKIObject.__init__, _lenient_init):
            cls.__init__ = _lenient_init  # type: ignore[method-assign]
