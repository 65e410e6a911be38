"""What the maps ask: a window in cells, the facts of some bytes, variables, a tensor."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from formats.dtypes import Dtype

if TYPE_CHECKING:
    from formats.regions import Region
    from neurontools.debugger import Session
    from neurontools.debugger.byte_facts import ByteFacts, Variable
    from neurontools.debugger.maps import MapCells
    from neurontools.debugger.readers import Reader
    from neurontools.debugger.tile_view import TileView
    from neurontools.debugger.window import Window

__all__ = ["Cells", "Extent", "ExtentAnswer", "Facts", "NotNumbers", "ReadBy", "TensorTable", "Variables"]


@dataclass(frozen=True)
class ExtentAnswer:
    """Size of a memory, and the bytes of each partition that the program's tiles lie in: all where it has none."""

    partitions: int
    nbytes: int
    first: int
    behind: int


@dataclass(frozen=True)
class Extent:
    """How large a memory of a core is, and what of it the program uses."""

    space: str
    core: int

    def answer(self, session: Session) -> ExtentAnswer:
        """Return it; it does not change while the program runs."""
        rows, width = session.inspector.maps.size(self.space, self.core)
        return ExtentAnswer(rows, width, *session.inspector.maps.used(self.space, self.core))


@dataclass(frozen=True)
class Cells:
    """A window of a memory; see `neurontools.debugger.maps`."""

    window: Window
    mode: str
    dtype: Dtype
    figure: str

    def answer(self, session: Session) -> MapCells:
        """Return the map."""
        return session.inspector.maps.cells(self.window, self.mode, self.dtype, self.figure)


@dataclass(frozen=True)
class Facts:
    """What is known of some bytes."""

    region: Region

    def answer(self, session: Session) -> ByteFacts:
        """Return it."""
        return session.inspector.facts(self.region)


@dataclass(frozen=True)
class ReadBy:
    """What reads some bytes of SBUF or PSUM next, or read them last."""

    STANDING = True  # it looks at many words

    region: Region

    def answer(self, session: Session) -> Reader | None:
        """Return it."""
        return session.inspector.reader(self.region)


@dataclass(frozen=True)
class Variables:
    """What HBM holds, each variable's written-ness in `parts` parts."""

    parts: int

    def answer(self, session: Session) -> tuple[Variable, ...]:
        """Return it by address."""
        return session.inspector.variables(self.parts)


@dataclass(frozen=True)
class TensorTable:
    """A tensor or slice; see `neurontools.debugger.tile_view`."""

    text: str
    dtype: Dtype | None
    window: tuple[int, int, int, int]
    heat: tuple[int, int]

    def answer(self, session: Session) -> TileView:
        """Return it as it is now."""
        return session.inspector.view_tensor(self.text, self.dtype, self.window, self.heat)


@dataclass(frozen=True)
class NotNumbers:
    """Names of tensors that hold a NaN in written bytes: tiles of a memory, or "HBM"."""

    STANDING = True  # it looks at every element

    space: str
    core: int

    def answer(self, session: Session) -> frozenset[str]:
        """Return them."""
        return session.inspector.not_numbers(self.space, self.core)
