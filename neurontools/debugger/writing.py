"""Where the commands of a session may write files: anywhere, below one folder, or nowhere."""

from __future__ import annotations

from pathlib import Path

from formats.named_tuple import NamedTuple
from neurontools.debugger.errors import UsageError

__all__ = ["ANYWHERE", "Writing", "forced"]


class Writing(NamedTuple):
    """What a session may write: below `folder` where there is one, nothing where `read_only`.

    Where existing files are `kept`, replacing one takes the word -f.
    """

    folder: Path | None = None
    read_only: bool = False
    kept: bool = False

    def refuse(self) -> None:
        """Raise UsageError where no file may be written."""
        if self.read_only:
            raise UsageError("this session writes no files (--read-only)")

    def readable(self, path: Path) -> Path:
        """Return a file that a command may read; UsageError where the session is kept below a folder and it is not."""
        if self.folder is not None and not path.resolve().is_relative_to(self.folder.resolve()):
            raise UsageError(f"{path} is outside {self.folder}, the only folder that this session reads commands from")
        return path

    def place(self, text: str, force: bool = False) -> Path:
        """Return the file that a command may write; UsageError where it may not."""
        self.refuse()
        path = Path(text)
        real = path.resolve()
        if self.folder is not None and not real.is_relative_to(self.folder.resolve()):
            raise UsageError(f"{text} is outside {self.folder}; --allow-writes lets commands write there")
        if self.kept and not force and (path.is_symlink() or real.exists()):
            raise UsageError(f"{text} exists; -f in front of the other arguments replaces it")
        return path


ANYWHERE = Writing()


def forced(rest: str) -> tuple[bool, str]:
    """Return whether an argument begins with -f, and what follows."""
    first, _, more = rest.partition(" ")
    return (True, more.strip()) if first == "-f" else (False, rest)
