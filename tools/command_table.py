"""The table of commands, read off the commands' own files.

A file whose docstring begins with its command's name ("`neurontools neff info`: …") and whose `app` is a `command_app`
is a command, summed up by the first line of its function's docstring. A package whose docstring begins with a name is a
group, summed up by the rest of that line. Nothing is imported. Rows that are there keep their order, which is the order
people read; new ones follow the last of their group.
"""

from __future__ import annotations

import ast
import re

from neurontools.command.table import TABLE, Listed
from tools.generate import ROOT

__all__ = ["files", "found", "rows"]

_PLACE = "neurontools/command/table.py"
_NAME = re.compile(r"`neurontools ([a-z -]+)`: (.*)")


def found() -> dict[str, Listed]:
    """Return a row for every command and group of the source tree, sorted by name."""
    leaves: dict[str, Listed] = {}
    groups: dict[str, str] = {}
    for path in sorted((ROOT / "neurontools").rglob("*.py")):
        text = path.read_text()
        if "`neurontools " not in text.split("\n", 1)[0]:
            continue
        tree = ast.parse(text)
        named = _NAME.match(ast.get_docstring(tree) or "")
        if named is None:
            continue
        call = _command(tree)
        if path.name == "__init__.py":
            groups[named[1]] = named[2][0].upper() + named[2][1:]
        elif call is not None:
            module = ".".join(path.relative_to(ROOT).with_suffix("").parts)
            if named[1] in leaves:
                raise SystemExit(f"{module} and {leaves[named[1]].module} are both {named[1]!r}")
            leaves[named[1]] = Listed(_summary(tree, call), module, any(one.arg == "default" for one in call.keywords))
    with_commands = {name.rpartition(" ")[0] for name in leaves} - {""}
    return dict(sorted({**leaves, **{name: Listed(groups[name]) for name in with_commands}}.items()))


def _command(tree: ast.Module) -> ast.Call | None:
    """Return the call that makes the module's `app`."""
    for node in tree.body:
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Call) and ast.unparse(node.targets[0]) == "app":
            return node.value if ast.unparse(node.value.func) == "command_app" else None
    return None


def _summary(tree: ast.Module, call: ast.Call) -> str:
    """Return the first line of the docstring of the command's function."""
    name = ast.unparse(call.args[0])
    function = next(node for node in tree.body if isinstance(node, ast.FunctionDef) and node.name == name)
    return (ast.get_docstring(function) or "").split("\n")[0]


def rows() -> dict[str, Listed]:
    """Return the table as it should be."""
    here = found()
    names = [name for name in TABLE if name in here]
    for name in here:
        if name not in names:
            group = name.rpartition(" ")[0]
            inside = [number for number, known in enumerate(names) if f"{known} ".startswith(f"{group} ".lstrip())]
            names.insert(max(inside, default=len(names) - 1) + 1, name)
    return {name: here[name] for name in names}


def files() -> dict[str, str]:
    """Return the table by its path; what else is generated in this process sees the new one."""
    renewed = rows()
    lines = []
    for name, entry in renewed.items():
        values = [_quoted(entry.summary)]
        values += [_quoted(entry.module)] if entry.module else []
        values += ["default=True"] if entry.default else []
        line = f"    {_quoted(name)}: Listed({', '.join(values)}),"
        if len(line) > 120:
            line = f"    {_quoted(name)}: Listed(\n" + "".join(f"        {value},\n" for value in values) + "    ),"
        lines.append(line)
    TABLE.clear()
    TABLE.update(renewed)
    head = (ROOT / _PLACE).read_text().split("TABLE: ")[0]
    return {_PLACE: "\n".join([f"{head}TABLE: dict[str, Listed] = {{", *lines, "}", ""])}


def _quoted(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'
