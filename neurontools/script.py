"""Running a user's script as `__main__`, with its own arguments, its own exit status and no frames of ours."""

from __future__ import annotations

import os
import sys
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType, TracebackType

from formats.errors import FormatError, NeuronError
from neurontools.files import need_file

__all__ = ["run_script"]


def run_script(path: Path, arguments: list[str]) -> int:
    """Run `path` as Python would, and return the exit status Python would give it.

    Errors that this toolkit raises on purpose (`NeuronError`) pass; any other error prints the script's own traceback.
    """
    source = need_file(path).read_bytes()
    main = ModuleType("__main__")
    main.__dict__.update(__file__=str(path), __builtins__=__builtins__, __cached__=None)
    with _as_main(main, path, arguments):
        try:
            code = compile(source, str(path), "exec", dont_inherit=True)
        except (SyntaxError, ValueError) as error:
            line = getattr(error, "lineno", None)
            raise FormatError(
                f"not Python: {getattr(error, 'msg', error)}", path=str(path) + (f":{line}" if line else "")
            ) from None
        try:
            exec(code, main.__dict__)
        except SystemExit as ended:
            return _status(ended.code)
        except (NeuronError, KeyboardInterrupt, BrokenPipeError):
            raise
        except Exception as error:  # noqa: BLE001  any error of the script is the script's: shown as Python shows it
            sys.stdout.flush()
            traceback.print_exception(type(error), error, _own_frames(error.__traceback__))
            return 1
        finally:
            _flush()
    return 0


def _status(code: object) -> int:
    if code is None:
        return 0
    if isinstance(code, int):
        return code & 0xFF
    print(code, file=sys.stderr)
    return 1


def _own_frames(trace: TracebackType | None) -> TracebackType | None:
    """Return the traceback from the script's first frame on."""
    return trace.tb_next if trace is not None else None


def _flush() -> None:
    if sys.exc_info()[0] is not BrokenPipeError:
        sys.stdout.flush()


@contextmanager
def _as_main(main: ModuleType, path: Path, arguments: list[str]) -> Iterator[None]:
    before = sys.argv, sys.modules.get("__main__"), list(sys.path)
    sys.argv = [str(path), *arguments]
    sys.modules["__main__"] = main
    sys.path.insert(0, os.path.dirname(os.path.abspath(path)))
    try:
        yield
    finally:
        sys.argv, old, sys.path[:] = before
        if old is not None:
            sys.modules["__main__"] = old
