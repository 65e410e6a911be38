"""Which compilers' files the decoder was checked against, and what can be said of a file of another one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from formats.named_tuple import NamedTuple

if TYPE_CHECKING:
    from formats.neff.reader import Neff

__all__ = ["CHECKED_COMPILERS", "OWN_COMPILER", "CheckedCompiler", "checked_compiler", "how_checked", "is_own"]


class CheckedCompiler(NamedTuple):
    """One compiler version whose words were all decoded, re-encoded and executed; `files` is how many public ones."""

    version: str
    arch_code: str
    files: int
    cite: str
    provenance: str = "observed"


CHECKED_COMPILERS: tuple[CheckedCompiler, ...] = (
    CheckedCompiler("2.23.6484.0+3b612583", "cayman", 12, "formats.md 1.2, isa.md 14.1"),
    CheckedCompiler("2.18.121.0+9e31e41a", "sunda", 12, "formats.md 1.2, isa.md 14.1"),
)

# What our own writer puts where neuronx-cc puts its version.
OWN_COMPILER = "neurontools"


def is_own(version: str | None) -> bool:
    """Return whether a compiler's name is this toolkit's."""
    return version is not None and version.split(" ")[0].split("/")[0] == OWN_COMPILER


def checked_compiler(neff: Neff) -> CheckedCompiler | None:
    """Return the checked compiler that wrote a file for a target it was checked for, or None."""
    version = neff.info.tool_version if neff.info is not None else ""
    codes = {kelf.target for kelf in neff.kelfs}
    return next((one for one in CHECKED_COMPILERS if one.version == version and codes == {one.arch_code}), None)


def how_checked(neff: Neff) -> Literal["checked", "own", "unchecked"]:
    """Return whether the decoder was checked on files like this one; `own` is a file that this toolkit wrote."""
    if checked_compiler(neff) is not None:
        return "checked"
    return "own" if neff.info is not None and is_own(neff.info.tool_version) else "unchecked"
