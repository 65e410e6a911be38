"""A NEFF as values: `open_neff` reads the header, everything else is read when it is asked for."""

from __future__ import annotations

import os
from functools import cached_property
from itertools import chain
from typing import TYPE_CHECKING

from formats.engines import ENGINES
from formats.errors import NotFoundError
from formats.limits import DEFAULT_LIMITS, Limits
from formats.neff.container import Container, Readable
from formats.neff.debuginfo import SourceLocation
from formats.neff.definition import Queue, Variable
from formats.neff.problem import Problem
from formats.neff.subgraph import Subgraph

if TYPE_CHECKING:
    from formats.neff.understood import UnknownPart

__all__ = ["Neff", "open_neff"]


def open_neff(source: Readable | Neff, limits: Limits = DEFAULT_LIMITS) -> Neff:
    """Return the NEFF in a file or in memory, one that is open as it is; only its header is read here.

    Raises FormatError when the file cannot be read or is not a NEFF. So does everything that is read later.
    """
    return source if isinstance(source, Neff) else Neff(source, limits)


class Neff(Container):
    """One NEFF file with its subgraphs, read-only and lazy."""

    def __repr__(self) -> str:
        return f"<Neff {self.path or self.header.name}>"

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the file under another name; it appears whole or not at all."""
        from formats.whole_files import write_beside  # deferred: start-up

        write_beside(path, self.to_bytes())

    @cached_property
    def subgraphs(self) -> tuple[Subgraph, ...]:
        """Return the subgraphs, one per physical core of the logical core."""
        graphs = [graph for kelf in self.kelfs for graph in kelf.graphs]
        return tuple(Subgraph(self, index, name, member) for index, (name, member) in enumerate(graphs))

    @property
    def variables(self) -> dict[str, Variable]:
        """Return the variables of all subgraphs by name; of one name in several, the first subgraph's."""
        return {name: one for graph in reversed(self.subgraphs) for name, one in graph.variables.items()}

    @property
    def queues(self) -> dict[str, Queue]:
        """Return the DMA queues of all subgraphs by name; of one name in several, the first subgraph's."""
        return {name: one for graph in reversed(self.subgraphs) for name, one in graph.queues.items()}

    def source_of(self, engine: str, pc: int, subgraph: int = 0) -> SourceLocation | None:
        """Return where the word in 64-byte slot `pc` of an engine comes from, or None where nothing is known.

        Raises NotFoundError for an engine or a subgraph that the file does not have.
        """
        if not 0 <= subgraph < len(self.subgraphs):
            raise NotFoundError(f"no subgraph {subgraph}, there are {len(self.subgraphs)}")
        if engine not in ENGINES:
            raise NotFoundError(f"no engine {engine!r}, there are {' '.join(ENGINES)}")
        return self.subgraphs[subgraph].source_of(engine, pc)

    @cached_property
    def not_understood(self) -> UnknownPart | None:
        """Return the first part of the file that is not understood, None where all is; words are not looked at."""
        from formats.neff.understood import unknown_in_file, unknown_in_subgraph  # deferred: start-up

        return next(chain(unknown_in_file(self), *map(unknown_in_subgraph, self.subgraphs)), None)

    def verify(self) -> list[Problem]:
        """Return everything that is wrong with the file; an empty list for a sound one."""
        from formats.neff.verify import verify  # deferred: start-up

        return verify(self, lambda: self.subgraphs)
