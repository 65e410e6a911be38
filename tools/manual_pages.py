"""Manual pages in roff, one per command, from the command line's own declarations.

Duck-typed on purpose: Typer carries a private copy of Click, and generators that test for Click's classes find no
options.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import typer

from neurontools.command.exits import EXIT_MEANINGS
from tools import roff
from tools.roff import roff as _text

__all__ = ["OWNS", "commands", "files", "page", "pages"]

OWNS = "man/man1/neurontools*.1"

ENVIRONMENT = {
    "NEURON_PLATFORM_TARGET_OVERRIDE": "Chip that kernels are built for: trn1, inf2, trn2 or trn3.",
    "NKI_PRECISE_FP": "0 keeps low-precision tiles in fp32 on chip.",
    "NKI_SIMULATOR": "1 makes calls of jit kernels run on the emulator.",
    "NEURONTOOLS_SCHEDULE": "on lets operations of kernels go ahead of others that wait, as the compiler of AWS does.",
    "NEURONTOOLS_DEBUG": "1 shows the traceback of a bug in neurontools.",
    "NO_COLOR": "Any value turns colours off.",
}


def commands() -> Iterator[tuple[str, Any]]:
    """Give every command, the root included, as ("neff info", command)."""
    from neurontools.cli import app

    yield from _walk("", typer.main.get_command(app), None)


def _walk(name: str, command: Any, parent: Any) -> Iterator[tuple[str, Any]]:
    yield name, command
    if hasattr(command, "list_commands"):
        for child in command.list_commands(parent):
            yield from _walk(f"{name} {child}".strip(), command.get_command(parent, child), parent)


def pages() -> dict[str, str]:
    """Return every page by its file name."""
    return {f"{'-'.join(['neurontools', *name.split()])}.1": page(name, command) for name, command in commands()}


def files() -> dict[str, str]:
    """Return every page by its path."""
    return {f"man/man1/{name}": text for name, text in pages().items()}


def page(name: str, command: Any) -> str:
    """Return the roff of one page."""
    title = "-".join(["neurontools", *name.split()])
    call = " ".join(["neurontools", *name.split()])
    first, *rest = _paragraphs(command.help or "")
    params = [p for p in command.params if not getattr(p, "hidden", False)]
    arguments = [p for p in params if p.param_type_name == "argument"]
    options = [p for p in params if p.param_type_name == "option"]
    lines = [
        roff.title(title.upper(), 1, "User Commands"),
        ".SH NAME",
        f"{_text(title)} \\- {_text(first.rstrip('.'))}",
        ".SH SYNOPSIS",
        f".B {_text(call)}",
    ]
    lines.append(_synopsis(arguments, options, hasattr(command, "list_commands")))
    lines += [".SH DESCRIPTION", _text(first)]
    for paragraph in rest:
        lines += [".PP", _text(paragraph)]
    if arguments:
        lines.append(".SH ARGUMENTS")
        for argument in arguments:
            lines += [".TP", f"\\fI{_text(_metavar(argument).strip('[]'))}\\fR", _text(argument.help or "")]
    if options:
        lines.append(".SH OPTIONS")
        for option in options:
            lines += [".TP", _flags(option), _text(_sentence(option))]
    if hasattr(command, "list_commands"):
        lines.append(".SH COMMANDS")
        for child in command.list_commands(None):
            summary = (command.get_command(None, child).help or "").strip().split("\n")[0]
            lines += [".TP", f"\\fB{_text(f'{title}-{child}')}\\fR(1)", _text(summary)]
    lines.append(".SH EXIT STATUS")
    for status, meaning in EXIT_MEANINGS.items():
        lines += [".TP", f"\\fB{int(status)}\\fR", _text(meaning)]
    if not name:
        lines.append(".SH ENVIRONMENT")
        for variable, meaning in ENVIRONMENT.items():
            lines += [".TP", f"\\fB{_text(variable)}\\fR", _text(meaning)]
    parents = ["neurontools", *(["neurontools-" + name.split()[0]] if " " in name else [])] if name else []
    lines += [
        ".SH SEE ALSO",
        ", ".join(f"\\fB{_text(p)}\\fR({s})" for p, s in [*((p, 1) for p in parents), ("neuron-isa", 7)]),
    ]
    return "\n".join(lines) + "\n"


def _synopsis(arguments: list[Any], options: list[Any], group: bool) -> str:
    parts = ["[\\fIOPTIONS\\fR]"] if options else []
    for argument in arguments:
        metavar = _metavar(argument).strip("[]")
        text = f"\\fI{_text(metavar)}\\fR"
        parts.append(text if argument.required else f"[{text}]")
    if group:
        parts.append("\\fICOMMAND\\fR [\\fIARGUMENTS\\fR]")
    return " ".join(parts)


def _metavar(parameter: Any) -> str:
    return str(parameter.metavar or parameter.name.upper())


def _flags(option: Any) -> str:
    names = [f"\\fB{_text(name)}\\fR" for name in [*option.opts, *option.secondary_opts]]
    value = "" if option.is_flag else f" \\fI{_text(option.metavar or 'VALUE')}\\fR"
    return ", ".join(names) + value


def _sentence(option: Any) -> str:
    text = (option.help or "").strip()
    default = option.default
    if option.is_flag or default is None or callable(default) or default == () or default == []:
        return text
    return f"{text} [default: {default}]"


def _paragraphs(text: str) -> list[str]:
    return [" ".join(part.split()) for part in text.strip().split("\n\n")] or [""]
