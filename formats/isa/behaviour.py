"""What a declaration says of a word's behaviour besides its bits; engines, checks, costs and builder read it there."""

from __future__ import annotations

from enum import Enum

from formats.named_tuple import NamedTuple

__all__ = ["KEPT", "Dataflow", "Duration", "EngineState", "Passes"]

# Entry of an operand's partition mask for a partition that the word leaves alone.
KEPT = 255


class Dataflow(Enum):
    """Which elements of the inputs an element of an output depends on."""

    # fmt: off
    ELEMENTS     = "those at the same place; of a longer input an equal part, of any other the whole partition"
    EARLIER      = "those at the same place and before it in the partition"
    PARTITION    = "all of the same partition"
    GROUP        = "all of the same group of 16 partitions"
    LOOKUP       = "all of the same partition, and the indices of its group of 16"
    ALL          = "all of every partition"
    CHOICE       = "the one that the predicate chooses"
    PERMUTATION  = "those at the same place of the partition that the mask names"
    TRANSPOSE    = "those at the place with partition and column exchanged"
    GATHER       = "those that the indices name"
    SCATTER      = "those whose indices name it"
    WEIGHTS      = "none: the word loads weights, which the next product depends on"
    PRODUCT      = "a column of the weights and an element of every partition"
    ACCUMULATORS = "the accumulator register of the partition"
    # fmt: on


class EngineState(Enum):
    """What a word reads or changes in its engine besides operands, so that such words keep their order."""

    # fmt: off
    NONE         = "nothing"
    ACCUMULATORS = "the accumulator registers"
    OPTIONAL     = "the accumulator registers, unless its reduce command is IDLE"
    GENERATOR    = "the random number generator"
    # fmt: on


class Passes(NamedTuple):
    """Cost of a word that passes over the elements of a tile.

    `over` is the operand whose elements count, `figure` the row of `emulator.cost.figures` that says how often they
    pass (once where it is empty), `slowed_by` names the operands whose strides can make the word slower, and
    `latency` is the figure of the fixed part.
    """

    over: str = "src"
    slowed_by: tuple[str, ...] = ("src", "dst")
    figure: str = ""
    latency: str = "vector_latency"


class Duration(NamedTuple):
    """Cost of a word that takes a fixed time, a row of `emulator.cost.figures`."""

    figure: str
