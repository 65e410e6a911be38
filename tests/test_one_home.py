"""Numbers of the hardware stand in one file: `formats/neuron_core.py`, names of engines in `formats/engines.py`.

What is looked for are numbers as they are written, after arithmetic on literals: sizes of memories that nothing else
has, and 128 in decimal, which is the number of partitions unless a file is listed here with what else it means there.
"""

from __future__ import annotations

import ast
import operator
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from formats import neuron_core
from formats.engines import ENGINES, short_engine
from formats.neuron_core import GENERATIONS, PSUM_BANK_BYTES, PSUM_BASE, PSUM_BYTES, SBUF_BYTES, SBUF_TAKEN

ROOT = Path(__file__).resolve().parent.parent
HOMES = {"formats/neuron_core.py", "formats/engines.py"}
# Kernels of published measurements stand as they were published, with the numbers in them.
KERNELS = "neurontools/validation/kernels/"
SIZES = {
    *(size - taken for generation, size in SBUF_BYTES.items() for taken in (0, *SBUF_TAKEN[generation])),
    *(128 * size for size in (*SBUF_BYTES.values(), PSUM_BYTES)),
    PSUM_BASE,
}
# What the same number is elsewhere, by file.
OTHER_SIZES = {
    "emulator/buffers.py": "bytes of memory that is kept",
    "formats/limits.py": "bytes of text",
    "formats/neff/coverage.py": "words that are remembered",
    "emulator/addresses.py": "registers of a DMA engine, and what lies between two",
}
OTHER_128 = {
    "emulator/activation_functions.py": "nodes of an interpolation in each unit",
    "emulator/dtypes.py": "the least int8",
    "emulator/machine/chips.py": "int8 TOPS of Inferentia",
    "emulator/machine/collectives/proxy.py": "requests on the network",
    "emulator/machine/instances.py": "vCPUs and GiB of instances",
    "emulator/runtime/sendrecv.py": "requests of a communicator",
    "emulator/runtime/timed_ranks.py": "ranks whose histories differ",
    "formats/isa/enums.py": "a code",
    "formats/hlo/shapes.py": "bits of a complex number",
    "formats/neff/header.py": "bytes of a string",
    "formats/ntff/metadata.py": "bytes of a header",
    "neurontools/dump/flags.py": "characters of a file name",
    "neurontools/hlo_interpreter/random_bits.py": "bits of a counter",
    "neurontools/nki/cache.py": "entries",
    "neurontools/tui/maps/view.py": "scales of a map: 1, 2, 3 and so on",
    "neurontools/validation/calls.py": "rows that a published table had",
}
# Names of constants that would be a second home, whatever number they hold.
NAMES = ("PARTITIONS", "LANES", "RINGS", "DMA_ENGINES", "BANK", "BANK_BYTES", "PSUM_BYTES", "SBUF_BYTES", "WORD",
         "SEMAPHORES", "SYNC_COUNT", "QUADRANT")  # fmt: skip

# What such a number is written with: a shift, a factor of 1,024, many digits.
_LARGE = r"<< ?\d|\b1024\b|\b0x[0-9a-fA-F]{5,}\b|\b[\d_]{6,}\b"
_FOLDED = {
    ast.Mult: operator.mul, ast.Add: operator.add, ast.Sub: operator.sub, ast.LShift: operator.lshift,
}  # fmt: skip


@cache
def _files() -> dict[str, str]:
    names = {
        str(path.relative_to(ROOT)): path
        for package in ("formats", "emulator", "neurontools")
        for path in sorted((ROOT / package).rglob("*.py"))
    }
    return {
        name: path.read_text() for name, path in names.items() if name not in HOMES and not name.startswith(KERNELS)
    }


@cache
def _tree(name: str) -> ast.Module:
    return ast.parse(_files()[name])


def _with(pattern: str) -> dict[str, tuple[str, ast.Module]]:
    """Return the files that hold a pattern: most hold none of what a test looks for, and parsing all takes seconds."""
    wanted = re.compile(pattern)
    return {name: (text, _tree(name)) for name, text in _files().items() if wanted.search(text)}


def value_of(node: ast.AST) -> int | None:
    """Return the number that an expression of literals is, None for any other."""
    if isinstance(node, ast.Constant) and type(node.value) is int:
        return node.value
    if isinstance(node, ast.BinOp) and type(node.op) in _FOLDED:
        left, right = value_of(node.left), value_of(node.right)
        if (
            left is not None
            and right is not None
            and 0 <= right < 1 << 40
            and (right < 64 or type(node.op) is not ast.LShift)
        ):
            number: int = _FOLDED[type(node.op)](left, right)
            return number
    return None


def numbers(tree: ast.AST) -> Iterator[tuple[int, ast.expr]]:
    """Yield the numbers of a file, those that sums and products of literals make too."""
    for node in ast.walk(tree):
        if isinstance(node, ast.expr) and (found := value_of(node)) is not None:
            yield found, node


def _sizes(tree: ast.AST) -> list[int]:
    return [node.lineno for number, node in numbers(tree) if number in SIZES]


def _partitions(text: str, tree: ast.AST) -> list[int]:
    """Return the lines of a file that write 128 in decimal, the sizes of extension words aside."""
    sizes = {
        id(part)
        for node in ast.walk(tree)
        if isinstance(node, ast.Assign) and "SIZE" in {each.id for each in ast.walk(node) if isinstance(each, ast.Name)}
        for part in ast.walk(node)
    }
    found = [node for number, node in numbers(tree) if number == 128 and isinstance(node, ast.Constant)]
    fields = {
        id(node.args[0]) for node in ast.walk(tree) if isinstance(node, ast.Call) and node.args
        and isinstance(node.func, ast.Name) and node.func.id in ("Integer", "Bytes")
    }  # fmt: skip
    lines = text.splitlines()
    return [
        node.lineno for node in found
        if id(node) not in sizes | fields and lines[node.lineno - 1][node.col_offset :].startswith("128")
    ]  # fmt: skip


def test_sizes_of_memories_stand_in_one_file() -> None:
    files = _with(_LARGE)
    wrong = {name: lines for name, (_, tree) in files.items() if name not in OTHER_SIZES and (lines := _sizes(tree))}
    assert not wrong, f"import these from formats.neuron_core: {wrong}"


def test_partitions_are_written_once() -> None:
    found = {name: lines for name, (text, tree) in _with(r"\b128\b").items() if (lines := _partitions(text, tree))}
    wrong = {name: lines for name, lines in found.items() if name not in OTHER_128}
    assert not wrong, f"128 is PARTITIONS of formats.neuron_core, or belongs on the list here: {wrong}"


def test_nothing_else_has_their_names() -> None:
    wrong = [
        f"{name}:{node.lineno} {target.id}"
        for name, (_, tree) in _with(rf"\n_?({'|'.join(NAMES)})\b").items()
        for node in tree.body
        if isinstance(node, ast.Assign) and value_of(node.value) is not None
        for target in node.targets
        if isinstance(target, ast.Name) and target.id.lstrip("_") in NAMES
    ]
    assert not wrong, wrong


@pytest.mark.parametrize("listed", [ENGINES, GENERATIONS])
def test_engines_and_generations_are_listed_once(listed: tuple[str, ...]) -> None:
    wrong = []
    for name, (_, tree) in _with(f'"{listed[0]}"').items():
        for node in ast.walk(tree):
            if isinstance(node, ast.Tuple | ast.List | ast.Set):
                words = [each.value for each in node.elts if isinstance(each, ast.Constant)]
                if len(words) == len(node.elts) == len(listed) and set(words) == set(listed):
                    wrong.append(f"{name}:{node.lineno}")
            elif isinstance(node, ast.Dict) and listed is ENGINES:
                keys = [each.value for each in node.keys if isinstance(each, ast.Constant)]
                values = {each.value for each in node.values if isinstance(each, ast.Constant)}
                if set(keys) == set(listed) and values == set(map(short_engine, ENGINES)):
                    wrong.append(f"{name}:{node.lineno}")
    # the engines of one word, in the order of their shares (isa.md 8)
    assert [each for each in wrong if not each.startswith("formats/isa/dma.py")] == []


def test_the_lists_of_this_test_are_needed() -> None:
    """A file that no longer writes the number leaves the list."""
    files = _files()
    assert [name for name in OTHER_SIZES if name not in files or not _sizes(_tree(name))] == []
    assert [name for name in OTHER_128 if name not in files or not _partitions(files[name], _tree(name))] == []


def test_a_second_home_is_found() -> None:
    """What this test looks for, planted."""
    planted = "LIMIT = 224 * 1024\nBASE = 1 << 25\nROWS = 128\nOTHER = 0x80\n"
    tree = ast.parse(planted)
    assert _sizes(tree) == [1, 2] and _partitions(planted, tree) == [3]


def test_figures_agree_with_each_other() -> None:
    assert set(SBUF_BYTES) == set(SBUF_TAKEN) == set(neuron_core.MOVING_COLUMNS) == set(GENERATIONS)
    assert PSUM_BYTES == neuron_core.PSUM_BANKS * PSUM_BANK_BYTES
    assert neuron_core.start_partitions(64) == (0, 64)
    every = range(1, 129)
    reach = {
        count: [s for s in range(0, 128, 32) if count <= 32 or (count <= 64 and s in (0, 64)) or s == 0]
        for count in every
    }
    assert {count: list(neuron_core.start_partitions(count)) for count in every} == reach


def test_named_tuples_are_the_light_ones() -> None:
    """typing's take eight times as long to declare, and every start declares hundreds (`formats/named_tuple.py`)."""
    home = ROOT / "formats" / "named_tuple.py"
    found = [
        str(path.relative_to(ROOT))
        for package in ("formats", "emulator", "neurontools")
        for path in sorted((ROOT / package).rglob("*.py"))
        if path != home
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.ImportFrom) and node.module in ("typing", "collections")
        for name in node.names
        if name.name.lower() == "namedtuple"
    ]
    assert not found
