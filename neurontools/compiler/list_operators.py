"""`neurontools compile list-operators`: the operations that are compiled."""

from __future__ import annotations

from typing import Annotated

import typer

from formats.named_tuple import NamedTuple
from neurontools.command.lazy import command_app
from neurontools.command.options import Json
from neurontools.command.output import report


class Operators(NamedTuple):
    """The result of `compile list-operators`: opcodes of HLO, and targets of custom calls that are known."""

    operators: tuple[str, ...]
    custom_calls: tuple[str, ...]


def operators() -> Operators:
    """Return what the compiler has a lowering or an expansion for."""
    from neurontools.compiler import pipeline  # deferred: start-up  # noqa: F401  registers the lowerings
    from neurontools.compiler.complex_numbers import COMPLEX  # deferred: start-up
    from neurontools.compiler.elementwise import ELEMENTWISE  # deferred: start-up
    from neurontools.compiler.expand import EXPANDED  # deferred: start-up
    from neurontools.compiler.expand_calls import COMPILED  # deferred: start-up
    from neurontools.compiler.importing import IMPORTED  # deferred: start-up
    from neurontools.compiler.lowering import LOWERINGS  # deferred: start-up

    ours = {"strided-update", "custom-call"}
    names = ({*LOWERINGS, *ELEMENTWISE, *EXPANDED, *IMPORTED, *COMPLEX} - ours) | {"custom-call"}
    return Operators(tuple(sorted(names)), tuple(sorted(COMPILED)))


def list_operators(
    framework: Annotated[str, typer.Option("--framework", help="What made the module; XLA is the only one.")] = "XLA",
    json: Json = False,
) -> None:
    """List the operations that are compiled."""
    if framework != "XLA":
        raise typer.BadParameter(f"{framework!r} is not XLA", param_hint="--framework")
    with report("compile list-operators", json, framework=framework) as out:
        found = operators()
        out.result = found
        out.lines = lambda: [*found.operators, *(f"custom-call {name}" for name in found.custom_calls)]


app = command_app(list_operators, result=Operators)
