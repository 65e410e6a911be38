"""From a parsed .s program to a NEFF, as bytes or opened."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from formats.errors import FormatError
from formats.neuron_core import DMA_ENGINES
from neurontools.assembly.assembler import Copy, Program, Tensor

if TYPE_CHECKING:
    from collections.abc import Iterator

    from formats.neff import Descriptor, Neff, NeffWriter, SubgraphWriter

__all__ = ["to_neff", "to_open_neff"]


def to_neff(program: Program) -> bytes:
    """Return the NEFF of a program: one subgraph, deterministic bytes, source lines of the .s file in its debug info.

    Raises FormatError where the parts do not fit together; the message names the program's file.
    """
    with _naming(program):
        return _writer(program).to_bytes()


def to_open_neff(program: Program) -> Neff:
    """Return the NEFF of a program, open, whose bytes, those of `to_neff`, are made once somebody asks for them."""
    with _naming(program):
        return _writer(program).hand_over(understood=True)


@contextmanager
def _naming(program: Program) -> Iterator[None]:
    """Let errors name the program's file."""
    try:
        yield
    except FormatError as error:
        raise error if error.path == program.path else FormatError(str(error), path=program.path) from None


def _writer(program: Program) -> NeffWriter:
    """Return the parts of a program's NEFF."""
    from formats.neff import EXTENDED_FEATURE, NeffWriter  # deferred: start-up

    writer = NeffWriter(program.target, program.name)
    graph = writer.subgraph(0)
    if program.dialect == "extended":
        graph.feature(EXTENDED_FEATURE)
    graph.variable("SB", "state-buffer")
    for tensor in program.tensors:
        _tensor(graph, tensor, program.variable_ids[tensor.name])
        if tensor.kind != "constant":
            getattr(writer, tensor.kind)(tensor.name, tensor.dtype, tensor.shape)
    _scratch(graph, program)
    for queue in program.queues:
        has_blocks = any(copy.queue == queue.name for copy in program.copies)
        graph.queue(
            queue.name,
            "data" if has_blocks else "dynamic",
            queue.owner,
            DMA_ENGINES,
            range(queue.semaphore, queue.semaphore + DMA_ENGINES),
        )
    owners = {queue.name: queue.owner for queue in program.queues}
    for copy in program.copies:
        graph.dma_block(copy.queue, copy.block, owners[copy.queue], [_descriptor(copy)],
                        semaphore=copy.semaphore, comment=f"{program.path}:{copy.line}")  # fmt: skip
    functions = _functions(program)
    if functions:
        graph.activation_set("neurontools", functions)
    for engine, words in program.words.items():
        graph.stream(engine, program.stream(engine))
        graph.debug(engine, [(f"{engine}-{number}", program.path, word.line) for number, word in enumerate(words)])
    return writer


def _tensor(graph: SubgraphWriter, tensor: Tensor, var_id: int) -> None:
    if tensor.kind == "constant":
        graph.constant(tensor.name, tensor.data, var_id=var_id)
        return
    graph.variable(tensor.name, tensor.kind, tensor.size, var_id=var_id)
    graph.tensor(tensor.name, tensor.dtype, tensor.shape, tensor.kind)


def _scratch(graph: SubgraphWriter, program: Program) -> None:
    """Lay the scratch variables one after the other in the shared scratchpad."""
    offset = 0
    for item in program.scratch:
        offset = -(-offset // item.alignment) * item.alignment
        graph.variable(
            item.name,
            "virtual",
            item.size,
            var_id=program.variable_ids[item.name],
            alignment=item.alignment,
            backing_offset=offset,
        )
        offset += item.size


def _descriptor(copy: Copy) -> Descriptor:
    from formats.neff import Descriptor  # deferred: start-up

    source, target = copy.source, copy.target
    cast = source.dtype != target.dtype
    return Descriptor(
        source.variable,
        source.offset,
        source.sizes,
        source.steps,
        target.variable,
        target.offset,
        target.sizes,
        target.steps,
        "cast" if cast else "copy",
        source.dtype,
        target.dtype,
    )


def _functions(program: Program) -> list[str]:
    """Return the activation functions that the words name, for the file's own table."""
    from formats.isa import ActivationFunction, decode_stream  # deferred: start-up

    names: dict[str, None] = {}
    for engine in program.words:
        for word in decode_stream(program.stream(engine), program.target.generation, program.dialect):
            field = word.FIELDS.get("function")
            if field is not None:
                code = field.read(word.raw)
                if not isinstance(code, ActivationFunction):
                    raise FormatError("activation function has no name", path=program.path, got=hex(code))
                names[code.name.lower()] = None
    return list(names)
