"""Our NamedTuple against typing's: what can be seen of a class is the same, but that annotations stay text."""

from __future__ import annotations

import copy
import inspect
import pickle
import re
import sys
import typing
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from formats import named_tuple

BODY = '''
from __future__ import annotations

class Row(NamedTuple):
    """What a row holds."""

    name: str
    words: tuple[int, ...]
    """A text below a field belongs to nobody."""
    engine: int | None = None
    other: dict[str, Row] = {}

    def total(self) -> int:
        """Return a sum."""
        return sum(self.words)

    @property
    def first(self) -> int:
        return self.words[0]

    @classmethod
    def of(cls, name: str) -> Row:
        return cls(name, (1, 2))

    def __str__(self) -> str:
        return f"row {self.name}"

class Bare(NamedTuple):
    only: int

class Nothing(NamedTuple):
    pass

class Printed(NamedTuple):
    one: int

    def __repr__(self) -> str:
        return "printed"
'''


@pytest.fixture
def pair() -> Iterator[tuple[Any, Any]]:
    """Yield a module of classes made by typing's NamedTuple and one of the same made by ours."""
    made = []
    for home, name in ((typing, "made_by_typing"), (named_tuple, "made_by_us")):
        module: Any = type(sys)(name)
        module.NamedTuple = home.NamedTuple
        sys.modules[name] = module  # where pickle and typing look for it
        exec(compile(BODY, name, "exec"), module.__dict__)
        made.append(module)
    yield made[0], made[1]
    for module in made:
        del sys.modules[module.__name__]


CLASSES = ("Row", "Bare", "Nothing", "Printed")


@pytest.mark.parametrize("name", CLASSES)
def test_a_class_says_the_same_of_itself(pair: tuple[Any, Any], name: str) -> None:
    theirs, ours = (getattr(module, name) for module in pair)
    for attribute in ("__name__", "__qualname__", "__doc__", "__bases__", "__slots__", "__match_args__", "_fields",
                      "_field_defaults"):  # fmt: skip
        assert getattr(ours, attribute) == getattr(theirs, attribute), attribute
    assert ours.__module__ == "made_by_us"
    shown = re.sub(r"ForwardRef\((.*?)\)", r"\1", str(inspect.signature(theirs)))
    assert str(inspect.signature(ours)).replace("'", "") == shown.replace("'", "")  # from 3.14 on typing's has none
    # for typing's own use, from 3.12 and 3.14 on
    assert set(vars(theirs)) - set(vars(ours)) <= {"__orig_bases__", "__annotate_func__"}
    assert ours.__new__.__doc__ == theirs.__new__.__doc__ and ours.__new__.__qualname__ == theirs.__new__.__qualname__
    for field in ours._fields:
        assert vars(ours)[field].__doc__ == vars(theirs)[field].__doc__
    hints = [repr(typing.get_type_hints(cls)).replace("made_by_us", "made_by_typing") for cls in (ours, theirs)]
    assert hints[0] == hints[1]


@pytest.mark.parametrize("call", [
    lambda m: m.Row("a", (1, 2)),
    lambda m: m.Row("a", words=(1, 2), engine=3),
    lambda m: m.Row(name="a", words=()),
    lambda m: m.Row._make(["a", (3,), None, {}]),
    lambda m: m.Row("a", (1, 2))._replace(name="b", engine=4),
    lambda m: m.Row("a", (1, 2))._asdict(),
    lambda m: m.Row("a", (1, 2)).total() + m.Row.of("b").first,
    lambda m: str(m.Row.of("b")),
    lambda m: [*m.Row("a", (1,))][::-1],
    lambda m: m.Row("a", (1,))[1],
    lambda m: hash(m.Bare(7)) == hash((7,)),
    lambda m: m.Bare(7) == (7,) and m.Bare(7) < m.Bare(8),
    lambda m: m.Printed(1),
    lambda m: m.Nothing(),
    lambda m: pickle.loads(pickle.dumps(m.Row("a", (1, 2)))),
    lambda m: copy.deepcopy(m.Row("a", (1, 2))),
    lambda m: m.Row("a", (1,)) * 2,
])  # fmt: skip
def test_values_behave_the_same(pair: tuple[Any, Any], call: Callable[[Any], Any]) -> None:
    theirs, ours = map(call, pair)
    assert repr(ours) == repr(theirs) and type(ours).__name__ == type(theirs).__name__


@pytest.mark.parametrize("call", [
    lambda m: m.Row("a"),
    lambda m: m.Row(),
    lambda m: m.Row("a", (), 1, {}, 5),
    lambda m: m.Row("a", (), wrong=1),
    lambda m: m.Bare(1)._replace(wrong=1),
    lambda m: m.Row._make(["a"]),
    lambda m: setattr(m.Bare(1), "only", 2),
    lambda m: setattr(m.Bare(1), "other", 2),
])  # fmt: skip
def test_errors_are_the_same(pair: tuple[Any, Any], call: Callable[[Any], Any]) -> None:
    said = []
    for module in pair:
        with pytest.raises((TypeError, ValueError, AttributeError)) as raised:
            call(module)
        said.append((raised.type, str(raised.value).replace("made_by_us.", "").replace("made_by_typing.", "")))
    assert said[0] == said[1]


def test_a_match_takes_it_apart(pair: tuple[Any, Any]) -> None:
    for module in pair:
        match module.Row("a", (1, 2), 3):
            case module.Row(name, engine=engine):
                assert (name, engine) == ("a", 3)


PLAIN = '''
class Range(NamedTuple):
    """Bytes, declared without the import from __future__."""

    byte: Annotated[int, "First byte."]
    nbytes: Annotated[int | None, "How many."] = None

class Nothing(NamedTuple):
    """No fields at all."""
'''


def test_annotations_that_are_no_text_are_fields_too() -> None:
    made = []
    for home in (typing, named_tuple):
        names: dict[str, Any] = {"NamedTuple": home.NamedTuple, "Annotated": typing.Annotated, "__name__": "plain"}
        exec(compile(PLAIN, "plain", "exec", dont_inherit=True), names)
        made.append(names)
    for name in ("Range", "Nothing"):
        theirs, ours = (names[name] for names in made)
        assert ours._fields == theirs._fields and ours._field_defaults == theirs._field_defaults
        assert typing.get_type_hints(ours, include_extras=True) == typing.get_type_hints(theirs, include_extras=True)
        assert inspect.signature(ours) == inspect.signature(theirs)
    ours = made[1]["Range"]
    assert ours(3) == (3, None) and repr(ours(3, nbytes=4)) == "Range(byte=3, nbytes=4)"
