"""`neuron-dump`: collect a dump when the runtime calls it, or hand over to the commands that read dumps."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from contextlib import suppress

from neurontools.command.exits import ExitStatus
from neurontools.command.streams import settle
from neurontools.text.visible import visible
from neurontools.version import __version__

__all__ = ["main", "usage"]

# What follows the program's name when a person calls it, and the command that answers.
_HANDED_OVER = {"show": ("core", "info"), "recover": ()}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command line and return its exit status: 0 collected, 3 something could not be written."""
    try:
        return _run(list(sys.argv[1:] if arguments is None else arguments))
    finally:
        settle()


def _run(words: list[str]) -> int:
    if words and not words[0].startswith("-"):
        return _hand_over(words)
    if "--help" in words or "-h" in words:
        print(usage())
        return ExitStatus.OK
    if "--version" in words:
        print(f"neuron-dump (neurontools {__version__})")
        return ExitStatus.OK
    if not words:
        print(usage())
        return ExitStatus.USAGE
    return _collect(words)


def usage() -> str:
    """Return the help text, from the table of flags."""
    from neurontools.dump.flags import FLAGS  # deferred: start-up

    lines = [
        "Usage: neuron-dump FLAGS",
        "       neuron-dump show|why|triage|... FILE     (neurontools core ...)",
        "       neuron-dump recover DIR",
        "",
        "Collect a dump when an execution of the Neuron runtime fails.",
        "",
        "Flags of the runtime:",
    ]
    for ours in (False, True):
        if ours:
            lines += ["", "Flags of this program:"]
        for flag in FLAGS:
            if bool(flag.cite) is not ours:
                head = f"  {flag.name} {flag.value}"
                default = f" [default: {flag.default}]" if flag.default else ""
                lines.append(f"{head.ljust(28)}{flag.meaning}{default}")
    return "\n".join(lines)


def _collect(words: list[str]) -> int:
    from neurontools.dump.flags import read_flags  # deferred: start-up
    from neurontools.dump.limits import Deadline, OutOfTime  # deferred: start-up

    request = read_flags(words)
    deadline = Deadline(request.timeout)
    deadline.enforce(ExitStatus.BAD_INPUT)
    try:
        from neurontools.dump.collect import collect  # deferred: start-up

        found = collect(request, os.environ, deadline)
    except OutOfTime:
        _say(f"no end after {request.timeout:g} s")
        return ExitStatus.BAD_INPUT
    except (KeyboardInterrupt, BrokenPipeError):
        return ExitStatus.BAD_INPUT
    except Exception as error:  # the caller has failed already, and must get its answer
        _say(f"bug in neuron-dump: {type(error).__name__}: {' '.join(str(error).split())}")
        if os.environ.get("NEURONTOOLS_DEBUG"):
            raise
        return ExitStatus.BUG
    finally:
        deadline.release()
    for text in found.warnings:
        _say(f"warning: {text}")
    for text in found.failures:
        _say(text)
    with suppress(OSError):  # nobody listens; the dump is there
        if found.directory is not None:
            print(visible(f"{found.directory}{' (was there already)' if found.already else ''}"))
        for url in found.uploaded:
            print(visible(url))
        sys.stdout.flush()
    return ExitStatus.BAD_INPUT if found.failures else ExitStatus.OK


def _hand_over(words: list[str]) -> int:
    if words[0] == "recover":
        return _recover(words[1:])
    from neurontools.cli import main as neurontools  # deferred: start-up

    return int(neurontools([*_HANDED_OVER.get(words[0], ("core", words[0])), *words[1:]]))


def _recover(words: list[str]) -> int:
    from pathlib import Path  # deferred: start-up

    from neurontools.dump.publish import recover  # deferred: start-up

    if len(words) != 1 or words[0].startswith("-"):
        print("Usage: neuron-dump recover DIR")
        return ExitStatus.OK if words in (["--help"], ["-h"]) else ExitStatus.USAGE
    folder = Path(words[0])
    if not folder.is_dir():
        _say(f"{folder}: no such folder")
        return ExitStatus.NOT_FOUND
    print(visible(f"{folder}: dumps of {recover(folder)} interrupted processes completed"))
    return ExitStatus.OK


def _say(text: str) -> None:
    try:
        print(visible(f"neuron-dump: {text}"), file=sys.stderr, flush=True)
    except OSError:
        return
