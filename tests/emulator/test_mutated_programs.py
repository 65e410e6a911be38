"""Damaged programs with a hash that fits: a result, a fault, a hang or a NeuronError, in bounded time and memory."""

from __future__ import annotations

import json
import random
import resource
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import neurontools.nki as nki
import neurontools.nki.isa as nisa
import neurontools.nki.language as nl
from emulator import runtime
from emulator.dtypes import numpy_dtype
from formats.dtypes import Dtype
from formats.errors import NeuronError, UnsupportedError
from formats.neff import Neff, open_neff, pack, unpack
from neurontools.assembly.assemble_neff import to_neff
from neurontools.assembly.assembler import parse_program
from neurontools.debugger import Session
from neurontools.nki.launch import build_neff
from tests.corpus.files import MATMUL_SMALL, find

STEPS = 2000
COUNTS = {"kernel": 60, "program": 60, "real": 25}
MOST_BYTES = 3 << 30
LARGEST_INPUT = 1 << 22

INTEGERS = (0, 1, -1, 2, 127, 128, 129, 255, 256, 1 << 18, 1 << 20, 1 << 31, 1 << 32, 1 << 40, 1 << 63, 1 << 64, 10**30)
OTHERS = (None, "", [], {}, True, 1.5, "x", [0], [[]], {"a": 1}, float("inf"), "\0", "é" * 10)


@nki.jit
def softmax_of_product(a: Any, b: Any) -> Any:
    """Use every engine: products in two passes, an activation, a reduction, scalars from memory, DMA both ways."""
    out = nl.ndarray((128, 256), dtype=nl.float32, buffer=nl.shared_hbm)
    left, right = (nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.sbuf) for x in (a, b))
    nisa.dma_copy(dst=left, src=a)
    nisa.dma_copy(dst=right, src=b)
    product = nl.ndarray((128, 256), dtype=nl.float32, buffer=nl.psum)
    nisa.nc_matmul(product, left, right)
    power = nl.ndarray((128, 256), dtype=nl.float32, buffer=nl.sbuf)
    nisa.activation(dst=power, op=nl.exp, data=product)
    total = nl.ndarray((128, 1), dtype=nl.float32, buffer=nl.sbuf)
    nisa.tensor_reduce(dst=total, op=nl.add, data=power, axis=1)
    nisa.reciprocal(dst=total, data=total)
    nisa.tensor_scalar(dst=power, data=power, op0=nl.multiply, operand0=total)
    nisa.dma_copy(dst=out, src=power)
    return out


def files(program: str) -> dict[str, bytes]:
    arrays = np.ones((64, 128), np.float32), np.ones((64, 256), np.float32)
    made = build_neff(softmax_of_product, arrays, {}, lnc=1, target="trn2")
    return {"kernel": made.to_bytes(), "program": to_neff(parse_program(program, "double.s"))}


def nodes(document: Any) -> Iterator[tuple[Any, Any]]:
    """Yield container and key of every value in a JSON document."""
    waiting = [document]
    while waiting:
        one = waiting.pop()
        for key in list(one) if isinstance(one, dict) else range(len(one)) if isinstance(one, list) else ():
            yield one, key
            waiting.append(one[key])


def changed_json(rng: random.Random, text: bytes) -> bytes:
    document = json.loads(text)
    for _ in range(rng.choice((1, 1, 2, 4))):
        places = list(nodes(document))
        if not places:
            break
        holder, key = rng.choice(places)
        value, kind = holder[key], rng.random()
        if kind < 0.15:
            del holder[key]
        elif kind < 0.3:
            holder[key] = rng.choice(OTHERS)
        elif kind < 0.4:
            other, name = rng.choice(places)
            if not isinstance(other[name], dict | list):
                holder[key] = other[name]
        elif isinstance(value, int):
            holder[key] = rng.choice((value + 1, value - 1, value * 2, value + 64, -value, *INTEGERS))
        elif isinstance(value, str):
            holder[key] = rng.choice((value + "x", value[:-1], "", value.upper(), "float32", "int8", "PE", "input"))
        elif isinstance(value, list) and value:
            value.append(json.loads(json.dumps(rng.choice(value))))
        else:
            holder[key] = rng.choice(INTEGERS)
    return json.dumps(document).encode()


def changed_words(rng: random.Random, data: bytes) -> bytes:
    out = bytearray(data)
    for _ in range(rng.choice((1, 1, 2, 3, 8, 30))):
        words, kind = len(out) // 64, rng.random()
        if not words:
            break
        at, other = rng.randrange(words) * 64, rng.randrange(words) * 64
        byte = rng.randrange(len(out) - 1)
        if kind < 0.35:
            out[byte] = rng.randrange(256)
        elif kind < 0.55:
            out[byte] ^= 1 << rng.randrange(8)
        elif kind < 0.7:
            out[byte : byte + 2] = rng.choice((0, 0xFFFF, 0x7FFF, 0x8000, 128, 129, 256)).to_bytes(2, "little")
        elif kind < 0.8:
            out[at : at + 64], out[other : other + 64] = out[other : other + 64], out[at : at + 64]
        elif kind < 0.86:
            del out[at : at + 64]
        elif kind < 0.92:
            out[at:at] = out[at : at + 64]
        elif kind < 0.96:
            out[at : at + 64] = rng.randbytes(64)
        else:
            del out[byte:]
    return bytes(out)


def changed(rng: random.Random, name: str, data: bytes) -> bytes:
    if name.endswith(".json") and rng.random() < 0.95:
        return changed_json(rng, data)
    return changed_words(rng, data)


def inputs_of(neff: Neff) -> dict[str, Any]:
    made = {}
    for tensor in neff.inputs:
        if np.prod([float(extent) for extent in tensor.shape]) <= LARGEST_INPUT:
            made[tensor.name] = np.ones(tensor.shape, numpy_dtype(Dtype.from_numpy_name(tensor.dtype)))
    return made


def outcome(data: bytes, seed: int) -> str:
    """Run a damaged file and return the kind of its end; anything but a NeuronError fails the test."""
    try:
        neff = open_neff(data)
        checks = ("all",) if seed % 5 == 0 else ()
        result = runtime.run(
            neff, inputs_of(neff), seed=seed if seed % 4 == 0 else None, checks=checks, max_steps=STEPS
        )
    except NeuronError as error:
        assert "\n" not in str(error) and len(str(error)) < 2000
        return type(error).__name__
    assert result.stats.instructions <= STEPS
    if result.hang is not None:
        assert result.hang.text()
        return "hang"
    return "done" if result.fault is None else f"fault {result.fault.kind}"


def mutate(data: bytes, folder: Path, seeds: range) -> Counter[str]:
    """Damage one member per seed, pack with the hash made anew, run."""
    unpack(open_neff(data), folder)
    whole = {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and path.relative_to(folder).parts[0] != ".neff"
    }
    likely = [name for name in whole for _ in range(3 if name.endswith(".bin") else 2 if name.endswith(".json") else 1)]
    ends: Counter[str] = Counter()
    for seed in seeds:
        rng = random.Random(seed)
        name = rng.choice(likely)
        (folder / name).write_bytes(changed(rng, name, whole[name]))
        pack(folder, folder.parent / "changed.neff")
        try:
            ends[outcome((folder.parent / "changed.neff").read_bytes(), seed)] += 1
        except Exception as error:
            raise AssertionError(f"seed {seed}, member {name}") from error
        (folder / name).write_bytes(whole[name])
    return ends


def check(ends: Counter[str]) -> None:
    assert ends["done"] and ends["FormatError"], ends
    assert any(end.startswith("fault") for end in ends) and len(ends) >= 4, ends


@pytest.fixture(autouse=True)
def bounded_memory() -> Iterator[None]:
    """Fail a test that takes the process far above the highest that the tests before it had taken it."""
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    yield
    assert (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) * 1024 < MOST_BYTES


@pytest.mark.parametrize("which", ["kernel", "program"])
def test_a_damaged_program_ends_as_it_should(program_text: str, tmp_path: Path, which: str) -> None:
    check(mutate(files(program_text)[which], tmp_path / "unpacked", range(COUNTS[which])))


def test_a_damaged_real_file_ends_as_it_should(corpus: Path, tmp_path: Path) -> None:
    real = find(corpus, MATMUL_SMALL)
    check(mutate(real.read_bytes(), tmp_path / "unpacked", range(COUNTS["real"])))


@pytest.mark.parametrize("semaphore", [-1, 256, 10**30])
def test_a_semaphore_that_does_not_exist_is_refused(program_text: str, tmp_path: Path, semaphore: int) -> None:
    folder = tmp_path / "unpacked"
    unpack(open_neff(files(program_text)["program"]), folder)
    engine = folder / "sg00" / "SP.json"
    document = json.loads(engine.read_bytes())
    for block in document["dma"]:
        block["semaphore"] = semaphore
    engine.write_text(json.dumps(document))
    pack(folder, tmp_path / "changed.neff")
    with pytest.raises(UnsupportedError, match=f"semaphore {semaphore} is none of the queue's"):
        runtime.run(tmp_path / "changed.neff", {"x": np.ones((128, 64), np.float32)})


def test_a_session_refuses_an_input_that_no_array_can_be(program_text: str, tmp_path: Path) -> None:
    folder = tmp_path / "unpacked"
    unpack(open_neff(files(program_text)["program"]), folder)
    known = folder / "neff.json"
    known.write_bytes(known.read_bytes().replace(b"128", b"9223372036854775807"))
    pack(folder, tmp_path / "changed.neff")
    with pytest.raises(NeuronError, match="9223372036854775807"):
        Session(open_neff(tmp_path / "changed.neff"), {})
