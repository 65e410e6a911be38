"""What imports what: no module in a circle, not even for its types; no import inside a function without a reason."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path

import pytest

PACKAGES = ("formats", "emulator", "neurontools")

# An import inside a function keeps start-up light, and says so behind the statement: `# deferred: start-up`; or it is
# of a package that may be absent, which it names: `# deferred: optional onnx`. Heavy packages need no word.
DEFERRED = re.compile(r"#.*\bdeferred: (?:start-up|optional (?P<name>[a-z0-9_]+))(?=  #|$)")
HEAVY = ("numpy", "ml_dtypes", "google", "elftools", "typer", "rich", "textual", "torch", "jax")


@cache
def modules(root: Path) -> Mapping[str, Path]:
    """Return every module of the packages by its name."""
    files = (path for package in PACKAGES for path in (root / package).rglob("*.py"))
    return {".".join(path.relative_to(root).with_suffix("").parts).removesuffix(".__init__"): path for path in files}


def imported(tree: ast.Module, known: Mapping[str, Path]) -> Iterator[str]:
    """Yield the modules of ours that a tree imports anywhere: at the top, in functions, for types."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (name.name for name in node.names if name.name in known)
        elif isinstance(node, ast.ImportFrom) and node.module in known:
            for name in node.names:
                inner = f"{node.module}.{name.name}"
                yield inner if inner in known else str(node.module)


def graph(root: Path) -> dict[str, set[str]]:
    """Return what each module imports."""
    known = modules(root)
    return {name: set(imported(ast.parse(path.read_text()), known)) - {name} for name, path in known.items()}


def circles(edges: Mapping[str, set[str]]) -> list[list[str]]:
    """Return the groups of modules that reach one another (Kosaraju's two passes)."""
    order: list[str] = []
    seen: set[str] = set()
    for start in edges:
        path = [(start, iter(sorted(edges[start])))] if start not in seen else []
        seen.add(start)
        while path:
            name, rest = path[-1]
            after = next((each for each in rest if each not in seen), None)
            if after is None:
                order.append(name)
                path.pop()
            else:
                seen.add(after)
                path.append((after, iter(sorted(edges[after]))))
    back: dict[str, set[str]] = {name: set() for name in edges}
    for name, targets in edges.items():
        for target in targets:
            back[target].add(name)
    found, taken = [], set()
    for start in reversed(order):
        group, todo = [], [start]
        while todo:
            name = todo.pop()
            if name not in taken:
                taken.add(name)
                group.append(name)
                todo += back[name]
        if len(group) > 1:
            found.append(sorted(group))
    return found


def test_circles_are_found() -> None:
    edges = {"a": {"b"}, "b": {"c"}, "c": {"a", "d"}, "d": {"e"}, "e": set(), "f": {"g"}, "g": {"f"}}
    assert sorted(circles(edges)) == [["a", "b", "c"], ["f", "g"]]


def test_no_module_imports_itself_by_way_of_others(root: Path) -> None:
    found = [", ".join(circle) for circle in circles(graph(root))]
    assert found == [], "a circle: put a protocol into the lower file"


def inside_functions(path: Path) -> Iterator[tuple[int, str]]:
    """Yield line and module of every import inside a function."""
    for function in ast.walk(ast.parse(path.read_text())):
        if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef):
            for node in ast.walk(function):
                if isinstance(node, ast.Import):
                    yield node.lineno, node.names[0].name
                elif isinstance(node, ast.ImportFrom):
                    yield node.lineno, node.module or ""


@pytest.mark.parametrize("package", PACKAGES)
def test_imports_inside_functions_say_why(root: Path, package: str) -> None:
    unsaid = []
    for path in sorted((root / package).rglob("*.py")):
        place = path.relative_to(root).as_posix()
        lines = path.read_text().splitlines()
        unsaid += [
            f"{place}:{line}"
            for line, module in sorted(set(inside_functions(path)))
            if module.split(".")[0] not in HEAVY and not DEFERRED.search(lines[line - 1])
        ]
    assert unsaid == [], "import at the top, or say why behind the statement: `# deferred: start-up`"


def wrong_words(line: str, module: str) -> bool:
    """Return whether what stands behind an import is in another form, or names another package than it imports."""
    said = re.search(r"#.*\b(deferred|optional)\b", line)
    known = DEFERRED.search(line)
    named = known["name"] if known is not None else None
    root = module.split(".")[0]
    return said is not None and (known is None or (named is not None and root not in (named, *PACKAGES)))


def test_words_behind_imports_have_one_form(root: Path) -> None:
    wrong = [
        f"{path.relative_to(root).as_posix()}:{line}"
        for package in PACKAGES
        for path in sorted((root / package).rglob("*.py"))
        for lines in [path.read_text().splitlines()]
        for line, module in sorted(set(inside_functions(path)))
        if wrong_words(lines[line - 1], module)
    ]
    assert wrong == [], "`# deferred: start-up`, or `# deferred: optional NAME` with the package that may be absent"


@pytest.mark.parametrize(
    ("comment", "wrong"),
    [
        ("# deferred: start-up", False),
        ("# deferred: optional jax", False),
        ("# noqa: F401  # deferred: optional jax", False),
        ("# deferred: optional", True),
        ("# optional: jax", True),
        ("# deferred: optional onnx", True),
        ("# deferred: optional jax, mostly", True),
        ("# numbers", False),
    ],
)
def test_other_forms_are_found(comment: str, wrong: bool) -> None:
    assert wrong_words(f"    import jax.numpy  {comment}", "jax.numpy") is wrong


def test_no_comment_holds_a_place(root: Path) -> None:
    """A comment of one letter was once left in eighteen files: one that says nothing goes."""
    empty = [
        f"{path.relative_to(root).as_posix()}:{number}"
        for package in PACKAGES
        for path in sorted((root / package).rglob("*.py"))
        for number, line in enumerate(path.read_text().splitlines(), 1)
        if re.fullmatch(r"\s*#\s*\w?\s*", line)
    ]
    assert empty == []
