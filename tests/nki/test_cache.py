"""A second launch skips tracing, and every ingredient that could change the file makes it trace again."""

from __future__ import annotations

import contextlib
import dataclasses
import gc
import hashlib
import json
import sys
import threading
import types
import weakref
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pytest

import neurontools
import neurontools.nki as nki
import neurontools.nki.language as nl
from formats.errors import FormatError
from formats.neff import open_neff
from formats.neff.writer import NeffWriter
from neurontools.nki import cache, patches, printing
from neurontools.nki import launch as launching
from neurontools.nki.arguments import Arguments
from neurontools.nki.isa import tensor_copy
from neurontools.nki.language import elementwise
from neurontools.nki.tensor import NkiTensor
from neurontools.program import launches

A = np.arange(12, dtype=np.float32).reshape(3, 4)

SOURCE = """
FACTOR = 2.0
TABLE = [1.0, 2.0]

class Config:
    def __init__(self, scale):
        self.scale = scale
    def factor(self):
        return self.scale

CONFIG = Config(1.0)

def helper(tile):
    return nl.multiply(tile, FACTOR)

def kernel(x, scale=1.0, config=CONFIG):
    out = nl.ndarray(x.shape, x.dtype, nl.shared_hbm)
    nl.store(out, nl.multiply(helper(nl.load(x)), scale * TABLE[0] * config.factor()))
    return out
"""


@pytest.fixture(autouse=True)
def fresh(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.delenv("NEURONTOOLS_LAUNCH_CACHE", raising=False)
    cache.clear()
    yield
    cache.clear()


@pytest.fixture
def traces(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return a list that grows by one with each launch that traces."""
    done: list[str] = []
    real = launching._trace

    def counting(kernel: Any, *rest: Any) -> Any:
        done.append(launching._name(kernel))
        return real(kernel, *rest)

    monkeypatch.setattr(launching, "_trace", counting)
    monkeypatch.setattr(sys, "gettrace", lambda: None)  # coverage counts as a debugger
    return done


def module(source: str = SOURCE, name: str = "cached_kernels") -> Any:
    made = types.ModuleType(name)
    made.__dict__["nl"] = nl
    made.__dict__["np"] = np
    exec(compile(source, f"<{name}>", "exec"), made.__dict__)
    return made


def run(space: Any, *args: Any, **kwargs: Any) -> Any:
    return nki.simulate(space.kernel)(*(args or (A,)), **kwargs)


def test_a_second_launch_skips_tracing_and_computes_on_the_new_values(traces: list[str]) -> None:
    space = module()
    np.testing.assert_array_equal(run(space), 2 * A)
    np.testing.assert_array_equal(run(space, A + 1), 2 * (A + 1))
    np.testing.assert_array_equal(run(module(), A + 2), 2 * (A + 2))  # the same source once more
    assert traces == ["kernel"] and cache.statistics() == (2, 1)


def changed(**values: Any) -> Callable[[Any], dict[str, Any]]:
    def change(space: Any) -> dict[str, Any]:
        space.__dict__.update(values)
        return {}

    return change


def replaced(old: str, new: str) -> Callable[[Any], dict[str, Any]]:
    def change(space: Any) -> dict[str, Any]:
        assert old in SOURCE
        space.__dict__.update(vars(module(SOURCE.replace(old, new))))
        return {}

    return change


def in_place(space: Any) -> dict[str, Any]:
    space.TABLE[0] = 3.0
    return {}


def attribute(space: Any) -> dict[str, Any]:
    space.CONFIG.scale = 3.0
    return {}


@pytest.mark.parametrize(
    ("change", "factor"),
    [
        (changed(FACTOR=3.0), 3.0),
        (changed(FACTOR=2), 2.0),
        (in_place, 6.0),
        (attribute, 6.0),
        (replaced("nl.multiply(tile, FACTOR)", "nl.add(tile, tile)"), 2.0),
        (replaced("scale * TABLE[0]", "scale * TABLE[1]"), 4.0),
        (replaced("return self.scale", "return self.scale + 1"), 4.0),
        (replaced("scale=1.0", "scale=5.0"), 10.0),
        (replaced("\ndef helper", "\n\ndef helper"), 2.0),  # lines stand in the debug information
        (lambda space: {"scale": 4.0}, 8.0),
        (lambda space: {"config": space.Config(2.0)}, 4.0),
    ],
)
def test_each_part_of_the_source_and_each_value(traces: list[str], change: Any, factor: float) -> None:
    space = module()
    run(space)
    keywords = change(space)
    np.testing.assert_array_equal(run(space, **keywords), factor * A)
    assert len(traces) == 2
    np.testing.assert_array_equal(run(space, **keywords), factor * A)
    assert len(traces) == 2


def test_a_build_is_kept_from_the_second_on(traces: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    space = module()
    first, second = (neurontools.build(space.kernel, A) for _ in range(2))
    third = neurontools.build(space.kernel, A + 1)
    assert len(traces) == 2 and third is second and third.to_bytes() == first.to_bytes()
    del second, third  # nobody has it open
    assert neurontools.build(space.kernel, A).to_bytes() == first.to_bytes()
    np.testing.assert_array_equal(run(space), 2 * A)  # a launch finds it, too
    assert len(traces) == 2
    neurontools.build(space.kernel, A[:2])
    monkeypatch.setenv("NEURONTOOLS_LAUNCH_CACHE", "off")
    neurontools.build(space.kernel, A)
    assert len(traces) == 4


def test_a_launch_that_is_found_has_its_file_open(monkeypatch: pytest.MonkeyPatch) -> None:
    """To open and decode it again took longer than to trace and build a small kernel."""
    opened: list[object] = []
    space = module()
    run_of = launches.Launches.run

    def noting(self: launches.Launches, name: str, neff: Any, inputs: Any) -> Any:
        opened.append(neff)
        return run_of(self, name, neff, inputs)

    monkeypatch.setattr(launches.Launches, "run", noting)
    for scale in (1.0, 1.0, 1.0, 3.0, 3.0, 1.0):
        np.testing.assert_array_equal(run(space, A + scale, scale), (A + scale) * 2 * scale)
    _, second, third, _, _, last = opened
    assert second is third is last


def test_few_small_files_stay_open() -> None:
    """One that was just built does not, since it holds its traces; nor does a large one, for what it decodes."""
    space = module()
    for _ in range(2):
        neurontools.build(space.kernel, A)
    first = weakref.ref(neurontools.build(space.kernel, A))
    assert first() is neurontools.build(space.kernel, A)
    for number in range(cache._MOST_OPEN):
        for _ in range(3):
            neurontools.build(space.kernel, A, float(number + 2))
    gc.collect()
    assert first() is None
    held = cache.LaunchCache()
    small = neurontools.build(space.kernel, A).to_bytes()
    for whole in (small, small + bytes(cache._LARGEST_OPEN)):
        with contextlib.suppress(FormatError):
            held.opened(str(len(whole)), cache.Prepared(whole, (), (), None, ()))
    assert list(held._left_open) == [str(len(small))]


@pytest.mark.parametrize(
    "change",
    [
        changed(FACTOR=3.0),
        in_place,
        attribute,
        replaced("nl.multiply(tile, FACTOR)", "nl.add(tile, tile)"),
        replaced("\ndef helper", "\n\ndef helper"),
    ],
)
def test_a_kept_build_gives_way_to_every_change(
    traces: list[str], monkeypatch: pytest.MonkeyPatch, change: Any
) -> None:
    space = module()
    before, *_ = (neurontools.build(space.kernel, A).to_bytes() for _ in range(3))
    assert len(traces) == 2
    kernel = space.kernel  # the very function, where what it reaches is replaced
    change(space)
    if space.kernel is not kernel and space.kernel.__code__ == kernel.__code__:
        space.kernel = kernel
    after = neurontools.build(space.kernel, A).to_bytes()
    monkeypatch.setenv("NEURONTOOLS_LAUNCH_CACHE", "off")
    assert after == neurontools.build(space.kernel, A).to_bytes() != before


def test_a_lenient_build_warns_each_time(traces: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    def kernel(x: Any) -> Any:
        tall = nl.ndarray((x.shape[0] + 1, 4), x.dtype, nl.sbuf)
        out = nl.ndarray((1, 4), x.dtype, nl.shared_hbm)
        nl.store(out, nl.load(x)[0:1])
        del tall
        return out

    for _ in range(4):
        neurontools.build(nki.simulate(kernel, lenient=True), np.zeros((128, 4), np.float32))
        assert "129 partitions" in capsys.readouterr().err
    assert len(traces) == 4


@pytest.mark.parametrize(
    "other", [A[:2], A.astype(np.int32), A.astype(np.float16), A.reshape(4, 3), A.reshape(3, 4, 1)]
)
def test_shapes_and_types_of_arrays(traces: list[str], other: Any) -> None:
    space = module()
    run(space)
    run(space, other)
    assert len(traces) == 2


def test_scalars_differ_by_type_and_by_bits(traces: list[str]) -> None:
    space = module()
    values = [1, 1.0, True, -0.0, 0.0]
    for value in values:
        run(space, A, value)
    assert len(traces) == len(values)


def test_the_same_array_twice_is_another_kind_of_argument(traces: list[str]) -> None:
    @nki.jit
    def kernel(x: Any, y: Any) -> Any:
        out = nl.ndarray(x.shape, x.dtype, nl.shared_hbm)
        nl.store(out, nl.add(nl.load(x), nl.load(y)))
        return out

    np.testing.assert_array_equal(kernel(A, A), 2 * A)
    np.testing.assert_array_equal(kernel(A, A.copy()), 2 * A)
    assert len(traces) == 2


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("NEURON_PLATFORM_TARGET_OVERRIDE", "trn2"),
        ("NKI_NC_VERSION", "gen2"),
        ("NKI_PRECISE_FP", "0"),
        ("NKI_SIMULATOR", "1"),
    ],
)
def test_switches_of_the_environment(traces: list[str], monkeypatch: pytest.MonkeyPatch, name: str, value: str) -> None:
    space = module()
    run(space)
    monkeypatch.setenv(name, value)
    run(space)
    assert len(traces) == 2


def test_target_and_cores(traces: list[str]) -> None:
    space = module(
        "def kernel(x):\n    out = nl.ndarray(x.shape, x.dtype, nl.shared_hbm)\n    row = nl.program_id(0)\n"
        "    nl.store(out[row : row + 1], nl.load(x[row : row + 1]))\n    return out\n"
    )
    run(space)
    nki.jit(space.kernel, platform_target="trn2")(A)
    nki.simulate(space.kernel)[2](A)
    launching.launch(space.kernel, (A,), {}, target="gen3")  # the trn2 of before
    assert len(traces) == 3


def test_closures_and_helpers_of_other_modules(traces: list[str]) -> None:
    helpers = module("FACTOR = 2.0\ndef scaled(tile):\n    return nl.multiply(tile, FACTOR)\n", "helpers_of_a_test")

    def made(number: float) -> Any:
        def kernel(x: Any) -> Any:
            out = nl.ndarray(x.shape, x.dtype, nl.shared_hbm)
            nl.store(out, nl.multiply(helpers.scaled(nl.load(x)), number))
            return out

        return nki.jit(kernel)

    np.testing.assert_array_equal(made(1.0)(A), 2 * A)
    np.testing.assert_array_equal(made(2.0)(A), 4 * A)
    space = (
        module("import helpers_of_a_test as helpers\n" + SOURCE.replace("helper(nl", "helpers.scaled(nl"))
        if (sys.modules.setdefault("helpers_of_a_test", helpers))
        else None
    )
    try:
        run(space)
        run(space)
        assert len(traces) == 3
        helpers.FACTOR = 5.0
        np.testing.assert_array_equal(run(space), 5 * A)
        assert len(traces) == 4
    finally:
        del sys.modules["helpers_of_a_test"]


PATCHED = """
def kernel(x):
    out = nl.ndarray(x.shape, x.dtype, nl.shared_hbm)
    nl.store(out, nl.multiply(nl.load(x) + 1.0, float(np.hypot(3.0, 4.0))))
    return out
"""


@pytest.mark.parametrize(
    ("place", "name", "stand_in", "want"),
    [
        (nl, "multiply", lambda x, y: nl.subtract(x, y), A + 1 - 5),
        (nl, "multiply", mock.Mock(side_effect=lambda x, y: nl.subtract(x, y)), A + 1 - 5),
        (NkiTensor, "__add__", lambda self, other: nl.multiply(self, 3.0), A * 3 * 5),
        (elementwise, "tensor_scalar", lambda dst, data, *rest, **more: tensor_copy(dst, data), A),
        (np, "hypot", lambda x, y: 7.0, (A + 1) * 7),
    ],
    ids=["function", "mock", "method", "inside", "numpy"],
)
def test_what_stands_in_for_a_function_of_ours_is_noticed(
    traces: list[str], monkeypatch: pytest.MonkeyPatch, place: Any, name: str, stand_in: Any, want: Any
) -> None:
    space = module(PATCHED)
    np.testing.assert_array_equal(run(space), (A + 1) * 5)
    with monkeypatch.context() as patch:
        patch.setattr(place, name, stand_in)
        np.testing.assert_array_equal(run(space), want)
    assert len(traces) == 2
    np.testing.assert_array_equal(run(space), (A + 1) * 5)
    assert len(traces) == 2


def test_names_are_walked_again_only_where_one_of_ours_has_changed(monkeypatch: pytest.MonkeyPatch) -> None:
    walked: list[str] = []
    real = patches._of_module
    stand_in = mock.Mock()

    def counting(name: str, names: dict[str, Any]) -> Any:
        walked.append(name)
        return real(name, names)

    def found() -> tuple[list[Any], bool]:
        walked.clear()
        return [name for name, _ in patches.replaced_names()], bool(walked)

    with monkeypatch.context() as patch:
        patch.setattr(patches, "_of_module", counting)  # which is a name of ours, too
        counted = found()[0]
        assert found() == (counted, False)
        patch.setitem(sys.modules, "__main__", types.ModuleType("__main__"))  # as every script does
        assert found() == (counted, False)
        patch.setattr(elementwise, "tensor_scalar", stand_in)
        assert found() == (sorted([*counted, "neurontools.nki.language.elementwise.tensor_scalar"]), True)
        assert not found()[1]
        patch.setattr(NkiTensor, "__add__", stand_in)
        assert "neurontools.nki.tensor.NkiTensor.__add__" in found()[0]
        patch.setitem(sys.modules, "neurontools.nki.no_such_part", types.ModuleType("neurontools.nki.no_such_part"))
        assert found()[1]
    assert patches.replaced_names() == []


@dataclasses.dataclass
class Options(nl.NKIObject):
    scale: float = 1.0


def test_configuration_objects(traces: list[str]) -> None:
    @nki.jit
    def kernel(x: Any, options: Options) -> Any:
        out = nl.ndarray(x.shape, x.dtype, nl.shared_hbm)
        nl.store(out, nl.multiply(nl.load(x), options.scale))
        return out

    for scale, count in ((1.0, 1), (1.0, 1), (3.0, 2)):
        np.testing.assert_array_equal(kernel(A, Options(scale)), scale * A)
        assert len(traces) == count


@pytest.mark.parametrize(
    "line",
    [
        "print(x)",
        "print('tracing', flush=True)",
        "log('tracing')",
        "np.random.rand()",
        "globals()",
        "open('/dev/null').close()",
        "seen.append(1)",
        "import time",
        "global count; count = 1",
        "next(iterator)",
    ],
)
def test_code_that_looks_or_works_outside_is_traced_each_time(traces: list[str], line: str) -> None:
    source = (
        f"log = print\nseen = []\ncount = 0\niterator = iter(range(100))\ndef kernel(x):\n    {line}\n    return x\n"
    )
    space = module(source)
    run(space)
    run(space)
    assert len(traces) == 2


def test_results_that_others_could_change_are_not_shared(
    traces: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    @nki.jit
    def kernel(x: Any) -> Any:
        return [x, {"a": 1, "b": ([2.5], x)}]

    monkeypatch.setenv("NEURONTOOLS_LAUNCH_CACHE", str(tmp_path))
    for is_fresh in (False, False, True, False):
        if is_fresh:
            cache.clear()  # the next one is from the folder
        got = kernel(A)
        assert type(got) is list and list(got[1]) == ["a", "b"] and got[1]["a"] == 1 and got[1]["b"][0] == [2.5]
        np.testing.assert_array_equal(got[0], A)
        np.testing.assert_array_equal(got[1]["b"][1], A)
        got[1]["b"][0].append(3)
        got[1]["c"] = 4
    assert len(traces) == 1


def test_a_list_that_is_a_result_twice_is_made_each_time(traces: list[str]) -> None:
    @nki.jit
    def kernel(x: Any) -> Any:
        twice = [1]
        return x, twice, twice

    for _ in range(2):
        _, first, second = kernel(A)
        assert first is second
    assert len(traces) == 2


def test_what_tracing_prints_is_printed_by_each_launch(
    traces: list[str], capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    space = module(
        "LEVEL = 1\ndef log(text):\n    if LEVEL:\n        print('[log]', text, sep=': ', end='!\\n')\n"
        "def kernel(x):\n    log(f'rows {x.shape[0]}')\n    print()\n    return x\n"
    )
    real = print
    monkeypatch.setenv("NEURONTOOLS_LAUNCH_CACHE", str(tmp_path))
    for is_fresh in (False, False, True, False):
        if is_fresh:
            cache.clear()
        run(space)
        assert capsys.readouterr().out == "[log]: rows 3!\n\n" and print is real
    assert len(traces) == 1
    space.LEVEL = 0
    for _ in range(2):
        run(space)
        assert capsys.readouterr().out == "\n"
    assert len(traces) == 2
    monkeypatch.delenv("NEURONTOOLS_LAUNCH_CACHE")
    for _ in range(3):
        neurontools.build(space.kernel, A)
        assert capsys.readouterr().out == "\n"
    assert len(traces) == 4


def test_a_launch_that_is_traced_under_a_profiler_is_not_kept(traces: list[str]) -> None:
    """The order in which its visits name variables is the profiler's doing."""
    space = module()
    sys.setprofile(lambda *given: None)
    try:
        run(space)
    finally:
        sys.setprofile(None)
    for _ in range(3):
        run(space)
    assert len(traces) == 2


def test_prints_of_another_thread_are_not_the_kernels(capsys: pytest.CaptureFixture[str]) -> None:
    real = print
    with printing.noticed(True) as outer, printing.noticed(True) as inner:
        other = threading.Thread(target=print, args=("other",))
        other.start()
        other.join()
        print("own")
    assert outer.texts == inner.texts == ["own\n"] and outer.is_text and print is real
    assert capsys.readouterr().out == "other\nown\n"
    for value in (object(), 1, "<x at 0x7f>"):
        with printing.noticed(True) as printed:
            print(value)
        assert not printed.is_text and not printed.texts
    with printing.noticed(True) as printed, mock.patch("builtins.print"):
        print("to somebody else")
    assert not printed.texts and print is real
    capsys.readouterr()


@pytest.mark.parametrize(
    "body",
    [
        "import builtins; builtins.input()",
        "space.input()",
        "__builtins__['input']()",
        "input()",
        "ask = input",
        "made = numbers()",
        "read('file')",
    ],
)
def test_no_name_hides_what_looks_outside(body: str) -> None:
    space = module(
        "import builtins as space\nfrom numpy import load as read\nnumbers = np.random.default_rng\n"
        f"def kernel(x):\n    {body}\n    return x\n"
    )
    assert launching._key_of(space.kernel, Arguments(space.kernel, (A,), {}), None, None) is None


def test_an_attribute_may_be_called_as_a_function_that_looks_outside(traces: list[str]) -> None:
    space = module(SOURCE.replace("scale", "input"))
    run(space)
    np.testing.assert_array_equal(run(space), 2 * A)
    space.CONFIG.input = 3.0
    np.testing.assert_array_equal(run(space), 6 * A)
    assert len(traces) == 2


def test_assertions_and_inputs_written_in_place_come_from_the_cache_too(
    traces: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    source = (
        "def kernel(x, y):\n    tile = nl.load(x)\n    assert nl.less(tile, 100.0)\n    nl.device_print('tile', tile)\n"
        "    nl.store(y, tile)\n    return y, None, 3\n"
    )
    space = module(source)
    for values in (A, A + 1):
        y = np.zeros_like(A)
        back, nothing, three = run(space, values, y)
        np.testing.assert_array_equal(y, values)
        np.testing.assert_array_equal(back, values)
        assert (nothing, three) == (None, 3) and "tile [[" in capsys.readouterr().out
    with pytest.raises(AssertionError, match=r"<cached_kernels>:3: .* 12 of 12 elements are zero"):
        run(space, A + 100, np.zeros_like(A))
    assert len(traces) == 1


def test_the_folder_serves_another_process_and_damage_is_a_miss(
    traces: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NEURONTOOLS_LAUNCH_CACHE", str(tmp_path / "launches"))
    space = module(SOURCE.replace("    return out", "    return out[1:, ::2], (None, 'text', out)"))
    want = run(space)
    cache.clear()
    got = run(space)
    np.testing.assert_array_equal(got[0], want[0])
    assert got[1][:2] == (None, "text") and len(traces) == 1
    (file,) = (tmp_path / "launches").iterdir()
    whole = file.read_bytes()
    for broken in (b"", whole[:50], whole[:-1], whole[:-1] + b"!", b"{}\n", b"[]\n" + whole):
        cache.clear()
        file.write_bytes(broken)
        np.testing.assert_array_equal(run(space)[0], want[0])
    assert len(traces) == 7 and file.read_bytes() == whole


def test_the_cache_can_be_turned_off_and_stays_small(traces: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    space = module()
    monkeypatch.setenv("NEURONTOOLS_LAUNCH_CACHE", "off")
    run(space)
    run(space)
    assert len(traces) == 2
    monkeypatch.delenv("NEURONTOOLS_LAUNCH_CACHE")
    held = cache.LaunchCache()
    for number in range(200):
        held.keep(str(number), cache.Prepared(bytes(4 << 20), (), (), None, ()))
    assert held.find("199") is not None and held.find("0") is None
    assert [held.find(str(number)) is None for number in range(200)].count(False) == 64


def test_nobody_looks_at_what_a_kernel_depends_on_where_nothing_is_kept(
    traces: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """To find that out can take longer than to build a small kernel."""
    asked: list[object] = []
    plain = launching.key_of
    monkeypatch.setattr(launching, "key_of", lambda *given: asked.append(given) or plain(*given))
    space = module()
    monkeypatch.setenv("NEURONTOOLS_LAUNCH_CACHE", "off")
    run(space)
    assert not asked
    monkeypatch.delenv("NEURONTOOLS_LAUNCH_CACHE")
    run(space)
    assert asked and len(traces) == 2


def test_values_of_a_launch_file_are_checked_where_they_enter(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file whose hash is right and whose values are not is no launch: the kernel is traced again."""
    monkeypatch.setenv("NEURONTOOLS_LAUNCH_CACHE", str(tmp_path))
    cache.clear()
    run(module())
    (file,) = tmp_path.glob("*.launch")
    _, _, body = file.read_bytes().partition(b"\n")
    text, _, neff = body.partition(b"\n")
    whole = json.loads(text)
    assert cache._read(str(file)) is not None
    name, dtype, shape, strides, offset = whole["results"]["tensor"]
    for change in (
        {"inputs": 5}, {"inputs": [["a"]]}, {"inputs": [["no such", [1]]]}, {"written": ["x"]}, {"written": [9]},
        {"looks": [["print", "y", [1], 0, ["f"], ""]]}, {"looks": {}}, {"results": 5}, {"results": {"value": []}},
        {"results": {"tensor": 3}}, {"results": {"tensor": [name, "float", shape, strides, offset]}},
        {"results": {"tensor": ["no such", dtype, shape, strides, offset]}},
        {"results": {"tensor": [name, dtype, shape, strides, 1 << 40]}},
        {"results": {"tensor": [name, dtype, [1 << 40], [1 << 40], offset]}},
        {"results": {"tuple": [5]}}, {"results": {"list": 5}}, {"results": {"dict": [{"value": 1}]}},
        {"printed": [5]}, {"printed": "text"},
    ):  # fmt: skip
        for damaged in (json.dumps({**whole, **change}).encode() + b"\n" + neff, text + b"\n" + neff[:2000]):
            first = json.dumps(
                {"neurontools_launch": cache._FORMAT, "sha256": hashlib.sha256(damaged).hexdigest()}
            ).encode()
            file.write_bytes(first + b"\n" + damaged)
            assert cache._read(str(file)) is None, change


def test_an_attribute_of_a_function_is_one_more_ingredient() -> None:
    def helper() -> None: ...

    helper.scale = 2.0  # type: ignore[attr-defined]

    def kernel(x: Any) -> Any:
        out = nl.ndarray(x.shape, x.dtype, nl.shared_hbm)
        nl.store(out, nl.multiply(nl.load(x), helper.scale))  # type: ignore[attr-defined]
        return out

    made = nki.jit(kernel)
    np.testing.assert_array_equal(made(A), 2 * A)
    helper.scale = 3.0  # type: ignore[attr-defined]
    np.testing.assert_array_equal(made(A), 3 * A)


def test_a_launch_that_nothing_keeps_makes_no_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    """The file runs as values; whoever asks a launch for its bytes has those that a reader finds the same things in."""
    monkeypatch.setenv("NEURONTOOLS_LAUNCH_CACHE", "off")
    made: list[int] = []
    whole = NeffWriter._whole

    def counting(writer: NeffWriter, contents: Any) -> Any:
        made.append(1)
        return whole(writer, contents)

    monkeypatch.setattr(NeffWriter, "_whole", counting)
    run = launches.Launches()
    with launches.using(run):
        kernel = module().kernel
        for scale in (1.0, 3.0):
            np.testing.assert_array_equal(nki.simulate(kernel)(A, scale), A * 2 * scale)
            assert len(made) == len(run.done) - 1  # that of a launch before the last: its file would hold its traces
    first, last = run.done
    assert isinstance(first.file, bytes) and not isinstance(last.file, bytes)
    assert last.neff == last.neff and len(made) == 2
    assert open_neff(last.neff).to_bytes() == launching.build_neff(kernel, (A, 3.0), {}).to_bytes()
    assert open_neff(last.file) is last.file
