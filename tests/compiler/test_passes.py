"""Passes: what verification refuses and how, what canonicalisation keeps, what the cache gives back."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from formats.errors import FormatError, NotFoundError, UnsupportedError
from formats.hlo.attributes import WindowDimension
from neurontools.compiler.cache import CompileCache
from neurontools.compiler.canonicalise import canonicalise
from neurontools.compiler.codes import CODES, code_of
from neurontools.compiler.errors import CompileError, UnsupportedGraphError
from neurontools.compiler.expand import expand
from neurontools.compiler.graph import Value
from neurontools.compiler.options import CompileOptions, check_options
from neurontools.compiler.rewriting import Builder
from tests.compiler.support import compiled, floats
from tests.compiler.test_codes import _conv, _graph


def test_codes_are_found_by_any_spelling() -> None:
    assert code_of("NCC_EVRF035") is code_of("evrf035") is CODES["EVRF035"]
    assert len(CODES) == 60
    with pytest.raises(NotFoundError, match="EVRF999"):
        code_of("EVRF999")


def test_options_that_contradict_the_target() -> None:
    with pytest.raises(CompileError, match="NCC_EARG001"):
        check_options(CompileOptions(target="trn1", lnc=2))
    check_options(CompileOptions(target="trn2", lnc=2))
    with pytest.raises(UnsupportedError, match="neuron-cc"):
        check_options(CompileOptions(target="inf1"))
    with pytest.raises(UnsupportedError, match="native-int64"):
        check_options(CompileOptions(native_int64="enabled"))
    with pytest.raises(FormatError, match="implicit-integer-downcast"):
        check_options(CompileOptions(implicit_integer_downcast="dot,sum"))


def test_what_has_no_lowering_says_so() -> None:
    def make(b: Builder, x: Value) -> Value:
        return b.graph.add("infeed", (x,), "f32", (4, 4))

    with pytest.raises(UnsupportedGraphError, match=r"%test: infeed is not supported at model.py:42"):
        compiled(make, floats(4, 4))


def test_equal_and_idle_nodes_become_one() -> None:
    def make(b: Builder, x: Value) -> Value:
        first, second = b.op("add", x, x), b.op("add", x, x)
        b.op("tanh", first)  # nobody needs it
        again = b.graph.add("transpose", (b.transpose(first, (1, 0)),), "f32", x.shape, permutation=(1, 0))
        return b.op("multiply", again, second)

    graph = canonicalise(_graph(make, ("f32", (3, 4))))
    assert [node.opcode for node in graph.nodes] == ["parameter", "add", "multiply"]


def test_expansion_leaves_what_has_a_lowering() -> None:
    graph = expand(_graph(_conv(WindowDimension(3, 1, 1, 1)), ("f32", (1, 4, 1)), ("f32", (3, 1, 1))))
    assert "convolution" not in {node.opcode for node in graph.nodes}
    assert "dot" in {node.opcode for node in graph.nodes}
    assert "dot(" in graph.text()


def test_a_kept_module_is_given_back_whole(tmp_path: Path) -> None:
    cache, options = CompileCache(tmp_path), CompileOptions()
    made = compiled(lambda b, x: b.op("add", x, x), floats(4))
    assert cache.find(b"module", options) is None
    cache.keep(b"module", options, made)
    found = cache.find(b"module", options)
    assert found is not None
    assert (found.neff, found.names, found.report) == (made.neff, made.names, made.report)
    assert cache.find(b"module", options._replace(optlevel=3)) is None
    place = cache.folder / cache.key(b"module", options) / "model.neff"
    place.write_bytes(place.read_bytes()[:-1] + b"x")
    assert cache.find(b"module", options) is None


def test_dumps_name_passes(tmp_path: Path) -> None:
    from neurontools.compiler.pipeline import compile_graph
    from neurontools.compiler.signature import Names

    graph = _graph(lambda b, x: b.op("add", x, x), ("f32", (4,)))
    names = Names(("a",), ("b",))
    made = compile_graph(graph, names, CompileOptions(), dump_after=["import", "canonicalise"])
    assert list(made.dumps) == ["import", "canonicalise"]
    assert "add(%0, %0)" in made.dumps["import"]
    with pytest.raises(NotFoundError, match="no pass 'fuse'"):
        compile_graph(graph, names, CompileOptions(), dump_after=["fuse"])
    assert np.frombuffer(made.neff[:4], np.uint8).size == 4


def test_programs_are_modules_bytes_or_paths(tmp_path: Path) -> None:
    from formats.hlo import module_bytes, save_hlo
    from neurontools import compile as compile_program
    from tests.compiler.support import adder

    save_hlo(tmp_path / "adder.pb", adder())
    for program in (adder(), module_bytes(adder()), tmp_path / "adder.pb", str(tmp_path / "adder.pb")):
        assert compile_program(program, lnc=1).verify() == []
    with pytest.raises(FormatError, match="not a program"):
        compile_program(3)
    with pytest.raises(FormatError, match="unknown option"):
        compile_program(adder(), speed=3)


def test_shapes_that_contradict_each_other() -> None:
    from neurontools import compile as compile_program
    from tests.compiler.support import adder

    module = adder()
    module.entry.root.shape = module.entry.root.shape.with_dimensions((4, 5))
    with pytest.raises(CompileError, match="NCC_EVRF064"):
        compile_program(module)
