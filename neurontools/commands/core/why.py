"""`neurontools core why`: the cause, from the dump alone."""

from __future__ import annotations

from neurontools.commands.core.arguments import CoreFile, open_core_file, tell_damage
from neurontools.commands.lazy import command_app
from neurontools.commands.options import Json
from neurontools.output import report


def why(file: CoreFile, json: Json = False) -> None:
    """Say what went wrong: the fault, or who waits for whom.

    Of a fault: the instruction, its source line, the operand, what it touched and what would have been allowed. Of a
    hang: who waits for which semaphore, what it was, who would have signalled it and where that one stood, the circles,
    and a verdict for each: cycle, unsignalled, exhausted, overshoot, transfer, behind or fault.
    """
    from neurontools import core_causes
    from neurontools.render import core_why as render

    with report("core why", json, file=file) as out:
        core = open_core_file(file)
        out.result = core_causes.why(core)
        tell_damage(out, core)
        out.lines = lambda: render.lines(file.name, out.result)


app = command_app(why)
