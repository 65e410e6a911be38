"""Running a user's script as `__main__`, with its own arguments, its own exit status and no frames of ours."""

from __future__ import annotations

import os
import sys
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path
from types import CodeType, ModuleType, TracebackType

from formats.errors import FormatError, NeuronError
from neurontools.command.files import need_file

__all__ = ["run_script"]

# The folder of the whole package: frames of any of its files are ours.
_PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep


def run_script(path: Path, arguments: list[str]) -> int:
    """Run `path` as Python would, and return the exit status Python would give it.

    Errors that this toolkit raises on purpose (`NeuronError`) pass; any other error prints the script's own traceback.
    """
    source = need_file(path).read_bytes()
    main = ModuleType("__main__")
    main.__dict__.update(__file__=str(path), __builtins__=__builtins__, __cached__=None)
    with _as_main(main, path, arguments):
        try:
            code = _compiled(source, str(path))
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
            traceback.print_exception(_without_our_frames(error))
            return 1
        finally:
            _flush()
    return 0


@lru_cache(maxsize=64)
def _compiled(source: bytes, path: str) -> CodeType:
    """Return a script's code; one that runs again, from the same bytes, is not compiled again."""
    return compile(source, path, "exec", dont_inherit=True)


def _status(code: object) -> int:
    if code is None:
        return 0
    if isinstance(code, int):
        # as a process that ends with it
        return code & 0xFF
    print(code, file=sys.stderr)
    return 1


def _without_our_frames(error: BaseException) -> BaseException:
    """Take out of an error, and of those it came from, the frames between the script and its kernels.

    The innermost frames stay, whoever's they are: they tell what failed.
    """
    seen: set[int] = set()
    waiting: list[BaseException | None] = [error]
    while waiting:
        one = waiting.pop()
        if one is None or id(one) in seen:
            continue
        seen.add(id(one))
        one.with_traceback(_pruned(one.__traceback__))
        waiting += one.__cause__, one.__context__
    return error


def _pruned(trace: TracebackType | None) -> TracebackType | None:
    frames = []
    while trace is not None:
        frames.append(trace)
        trace = trace.tb_next
    ours = [frame.tb_frame.f_code.co_filename.startswith(_PACKAGE) for frame in frames]
    last = max((number for number, our in enumerate(ours) if not our), default=-1)
    kept = [frame for number, frame in enumerate(frames) if number > last or not ours[number]]
    for frame, inner in zip(kept, [*kept[1:], None], strict=True):
        frame.tb_next = inner
    return kept[0] if kept else None


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
