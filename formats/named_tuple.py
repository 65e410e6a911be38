"""`NamedTuple` as typing declares it, made in an eighth of the time.

A command declares two hundred and more before it does anything. typing's compiles every annotation and the source of
every constructor, which was a fifth of what commands took to start; this one keeps annotations as the text they are and
copies the code of a constructor with as many fields. Types are checked as of typing's: to mypy it is that.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

__all__ = ["NamedTuple"]

if TYPE_CHECKING:
    from typing import NamedTuple
else:
    from functools import cache
    from types import FunctionType

    try:
        from _collections import _tuplegetter
    except ImportError:  # another Python than CPython has none; collections does the same
        from operator import itemgetter

        def _tuplegetter(index, doc):
            return property(itemgetter(index), doc=doc)

    _made = tuple.__new__
    _Unexpected = TypeError if sys.version_info >= (3, 13) else ValueError  # as collections raises

    @cache
    def _constructor(count):
        """Return the code of a constructor of so many fields; those of the class take the names' places."""
        given = "".join(f"a{number}, " for number in range(count))
        scope = {}
        exec(f"def __new__(_cls, {given}): return _made(_cls, ({given}))", scope)
        return scope["__new__"].__code__

    def _make(cls, values):
        """Return one of these values, in the order of the fields."""
        result = _made(cls, values)
        if len(result) != len(cls._fields):
            raise TypeError(f"Expected {len(cls._fields)} arguments, got {len(result)}")
        return result

    def _replace(self, /, **values):
        """Return this one with other values in these fields."""
        result = self._make(map(values.pop, self._fields, self))
        if values:
            raise _Unexpected(f"Got unexpected field names: {list(values)!r}")
        return result

    def _asdict(self):
        """Return the values by the names of their fields."""
        return dict(zip(self._fields, self, strict=True))

    def _repr(self):
        values = ", ".join([f"{name}={value!r}" for name, value in zip(self._fields, self, strict=True)])
        return f"{type(self).__name__}({values})"

    def _getnewargs(self):
        return tuple(self)

    def _annotations(body):
        """Return the annotations of a class body; from 3.14 on they are made late, unless they are text."""
        found = body.get("__annotations__")
        if found is not None or sys.version_info < (3, 14):
            return found or {}
        import annotationlib  # deferred: start-up

        annotate = annotationlib.get_annotate_from_class_namespace(body)
        if annotate is None:
            return {}
        return annotationlib.call_annotate_function(annotate, annotationlib.Format.FORWARDREF)

    class _Declared(type):
        """What a class statement with NamedTuple goes through: its annotations are the fields."""

        def __new__(cls, name, bases, body):
            annotations = body["__annotations__"] = _annotations(body)
            fields = tuple(annotations)
            defaults = {field: body[field] for field in fields if field in body}
            code = _constructor(len(fields)).replace(
                co_varnames=("_cls", *fields), co_filename=body["__module__"], co_qualname=f"{name}.__new__"
            )
            new = FunctionType(code, {"_made": _made}, "__new__", tuple(defaults.values()))
            call = f"{name}({', '.join(fields)}{',' if len(fields) == 1 else ''})"
            new.__qualname__, new.__doc__ = f"{name}.__new__", f"Create new instance of {call}"
            for number, field in enumerate(fields):
                body[field] = _tuplegetter(number, f"Alias for field number {number}")
            for method, function in _METHODS.items():
                body.setdefault(method, function)
            body.setdefault("__doc__", call)
            new.__annotations__ = annotations
            body |= {"__slots__": (), "__new__": new, "_fields": fields, "_field_defaults": defaults,
                     "__match_args__": fields}  # fmt: skip
            return type(name, (tuple,), body)

    _METHODS = {"__repr__": _repr, "__getnewargs__": _getnewargs, "__replace__": _replace, "_replace": _replace,
                "_asdict": _asdict, "_make": classmethod(_make)}  # fmt: skip
    _declared = type.__new__(_Declared, "NamedTuple", (), {})

    class _NamedTuple:
        """What stands in the bases of a class statement."""

        def __mro_entries__(self, bases):
            return (_declared,)

    NamedTuple = _NamedTuple()
