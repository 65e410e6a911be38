"""A remembered walk stands for a new one: whatever it read, changed in any way, has it taken again."""

from __future__ import annotations

import sys
import types
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import neurontools.nki.language as nl
from neurontools.nki import reach
from neurontools.nki.arguments import Arguments
from neurontools.nki.cache_key import Key, key_of
from neurontools.nki.purity import impurity

A = np.arange(12, dtype=np.float32).reshape(3, 4)

SOURCE = """
import enum
import functools

class Level(enum.Enum):
    LOW = 0
    HIGH = 1

class Base:
    factor = 1.0

class Config(Base):
    kind = "plain"
    def __init__(self, scale):
        self.scale = scale
        self.inner = {"deep": [1, 2, {"set": {1, 2}}]}
    @property
    def doubled(self):
        return self.scale * 2
    @staticmethod
    def fixed():
        return LIMIT
    def run(self):
        return self.fixed()

class Other(Config):
    pass

LIMIT = 5
TABLE = [1.0, 2.0]
WEIGHTS = np.ones(4, np.float32)
CONFIG = Config(1.0)
LEVEL = Level.LOW

def scaled(x, by):
    return x * by

HALF = functools.partial(scaled, by=0.5)

def made(number):
    def inner(x):
        return scaled(x, number)
    return inner

CLOSED = made([1.0])
helpers = None

def helper(x, *, more=TABLE):
    return nl.multiply(x, np.float32(LIMIT)), Level.HIGH, CONFIG.run(), HALF, CLOSED, WEIGHTS, LEVEL, LATER

def kernel(x, config=CONFIG):
    return helper(x), helpers.deep.value
"""


def module() -> Any:
    space = types.ModuleType("reached_kernels")
    space.__dict__.update(nl=nl, np=np)
    exec(compile(SOURCE, "<reached>", "exec"), space.__dict__)
    space.helpers = types.ModuleType("helpers_of_reach")
    space.helpers.deep = types.ModuleType("deep_helpers_of_reach")
    space.helpers.deep.value = 3
    return space


def key(space: Any, *given: Any) -> Key | None:
    return key_of(space.kernel, Arguments(space.kernel, (A, *given), {}), ("here",))


@pytest.fixture
def walks() -> Iterator[list[str]]:
    """Yield a list that grows with each walk that is taken; a stand-in for a function of ours would be walked, too."""
    taken: list[str] = []
    begun, taker = reach._Walk.__init__.__code__, reach.reached.__code__

    def look(frame: types.FrameType, event: str, argument: object) -> None:
        if event == "call" and frame.f_code is begun and frame.f_back is not None and frame.f_back.f_code is taker:
            taken.append("walk")

    reach._walks.clear()
    sys.setprofile(look)
    yield taken
    sys.setprofile(None)


def put(owner: Callable[[Any], Any], name: str, value: Any) -> Callable[[Any], None]:
    return lambda space: setattr(owner(space), name, value(space) if callable(value) else value)


def itself(space: Any) -> Any:
    return space


CHANGES: dict[str, Callable[[Any], Any]] = {
    "a number": put(itself, "LIMIT", 6),
    "a number that is equal": put(itself, "LIMIT", 5.0),
    "a truth value for a number": lambda space: space.TABLE.__setitem__(0, True),
    "an item of a list": lambda space: space.TABLE.__setitem__(0, 1),
    "one more item": lambda space: space.TABLE.append(3.0),
    "items in another order": lambda space: space.TABLE.reverse(),
    "an element of an array": lambda space: space.WEIGHTS.__setitem__(2, 7.0),
    "the shape of an array": lambda space: setattr(space.WEIGHTS, "shape", (2, 2)),
    "an attribute": lambda space: setattr(space.CONFIG, "scale", 1),
    "one more attribute": lambda space: setattr(space.CONFIG, "more", 1),
    "an attribute deep inside": lambda space: space.CONFIG.inner["deep"][2]["set"].add(3),
    "a key": lambda space: space.CONFIG.inner.__setitem__("new", None),
    "other attributes at once": lambda space: setattr(space.CONFIG, "__dict__", {"scale": 2.0}),
    "the class of an object": lambda space: setattr(space.CONFIG, "__class__", space.Other),
    "an attribute of a class": lambda space: setattr(space.Config, "kind", "other"),
    "an attribute of its base": lambda space: setattr(space.Base, "factor", 2.0),
    "a method": lambda space: setattr(space.Config, "run", lambda self: 1),
    "the code of a method": lambda space: setattr(space.Config.run, "__code__", (lambda self: 2).__code__),
    "a property": lambda space: setattr(space.Config, "doubled", property(lambda self: 3)),
    "a static method": lambda space: setattr(space.Config, "fixed", staticmethod(lambda: 3)),
    "the bases": lambda space: setattr(space.Config, "__bases__", (type("Base", (), {}),)),
    "a default": lambda space: setattr(space.kernel, "__defaults__", (space.Config(1.0),)),
    "a default by name": lambda space: space.helper.__kwdefaults__.__setitem__("more", [0.0]),
    "an attribute of a function": lambda space: setattr(space.scaled, "note", 1),
    "a code": lambda space: setattr(space.scaled, "__code__", (lambda x, by: x + by).__code__),
    "what a closure holds": lambda space: space.CLOSED.__closure__[0].cell_contents.append(1),
    "another thing in a closure": lambda space: setattr(space.CLOSED.__closure__[0], "cell_contents", 4.0),
    "a partial function": lambda space: space.HALF.keywords.__setitem__("by", 0.25),
    "a member": put(itself, "LEVEL", lambda space: space.Level.HIGH),
    "the value of a member": lambda space: setattr(space.Level.HIGH, "_value_", 9),
    "a variable that was not there": lambda space: setattr(space, "LATER", 1),
    "a variable that is gone": lambda space: delattr(space, "CLOSED"),
    "a variable of another module": lambda space: setattr(space.helpers.deep, "value", 4),
    "another module": lambda space: setattr(space.helpers, "deep", types.SimpleNamespace(value=3)),
    "a name of a function": lambda space: setattr(space.helper, "__qualname__", "other"),
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_a_walk_is_taken_again_where_anything_that_it_read_has_changed(
    walks: list[str], change: Callable[[Any], Any]
) -> None:
    space = module()
    before = key(space)
    assert before is not None and key(space) == before and len(walks) == 1
    change(space)
    after = key(space)
    assert len(walks) >= 2 and after != before
    reach._walks.clear()
    assert key(space) == after


def test_what_a_walk_does_not_read_has_it_stand(walks: list[str]) -> None:
    space = module()
    before = key(space)
    space.unused = 1
    space.helpers.other = 2
    reach.reached([space.scaled])
    walks.clear()
    assert key(space, space.CONFIG) != before  # given by hand, and so another argument
    assert key(space) == before
    assert len(walks) == 1  # with the class of what is given


def test_a_reason_is_remembered_and_forgotten_as_well(walks: list[str]) -> None:
    space = module()
    space.LATER = iter(())
    assert key(space) is None and key(space) is None and len(walks) == 1
    space.LATER = 1
    assert key(space) is not None and len(walks) == 2


def test_an_argument_that_the_kernel_reaches_as_well_is_another_one() -> None:
    space = module()
    equal = space.Config(1.0)
    assert key(space, equal) != key(space, space.CONFIG)
    assert key(space, space.Config(1.0)) == key(space, equal)
    assert key(space, space.Config(2.0)) != key(space, equal)


def test_arguments_are_read_each_time_and_their_classes_once(walks: list[str]) -> None:
    space = module()
    given = space.Config(2.0)
    first = key(space, given)
    given.scale = 3.0
    second = key(space, given)
    assert first != second != key(space, space.Config(2.0)) == first and len(walks) == 1
    space.Config.kind = "other"
    assert key(space, space.Config(2.0)) != first and len(walks) == 2


def test_walks_that_read_what_tells_nothing_are_taken_each_time(walks: list[str]) -> None:
    class Slotted:
        __slots__ = ("value",)

        def __init__(self) -> None:
            self.value = 1

    for value in (np.zeros(1 << 13, np.float32), Slotted(), type("Items", (list,), {})([1])):
        space = module()
        space.LATER = value
        walks.clear()
        first = key(space)
        if isinstance(value, np.ndarray):
            value[5] = 1
        elif isinstance(value, list):
            value.append(1)
        else:
            value.value = 2
        assert first is not None and key(space) not in (first, None) and len(walks) == 2


def test_few_walks_are_kept(walks: list[str]) -> None:
    spaces = [module() for _ in range(reach._MOST_WALKS + 3)]
    for space in spaces:
        key(space)
    assert len(reach._walks) == reach._MOST_WALKS
    walks.clear()
    key(spaces[-1])
    assert not walks
    key(spaces[0])
    assert len(walks) == 1


def test_names_that_only_look_like_functions_that_look_outside() -> None:
    def plain(self: Any, other: Any) -> Any:
        self.input = other.input
        return self.input

    def hidden(self: Any) -> Any:
        return map(input, self)

    assert impurity(plain.__code__) is None and impurity(hidden.__code__) == "uses input"


def test_methods_of_kernels_are_walked_once(walks: list[str]) -> None:
    space = module()
    methods = [types.MethodType(space.helper, space.CONFIG) for _ in range(2)]
    first, second = (key_of(one, Arguments(one, (), {}), ()) for one in methods)
    assert first == second and first is not None and len(walks) == 1
    third = types.MethodType(space.helper, space.Config(2.0))
    assert key_of(third, Arguments(third, (), {}), ()) not in (first, None)
