"""What may never come of an input: a traceback, status 70, text that is not for printing, too much time or memory."""

from __future__ import annotations

import json
import resource
import signal
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import NamedTuple

from formats.errors import NeuronError
from neurontools.command.errors_to_exit import classify
from neurontools.command.exits import ExitStatus

__all__ = ["Broken", "Crash", "need_json", "need_printable", "tried"]

SECONDS = 2.0  # of an input below a megabyte
_ALARM = 20.0  # what runs this long is stopped
MEGABYTES = 500
_ALLOWED = "\n\t"


class Broken(AssertionError):  # noqa: N818  an oracle's word, not an error of the product
    """Say which oracle an input broke."""


class Crash(NamedTuple):
    """What an input did: a class of crash that tells equal ones apart, and a line about it."""

    kind: str
    text: str


class _TooLong(BaseException):
    """Ends an input that does not end by itself; no Exception, so that no reader catches it."""


@contextmanager
def _alarm() -> Iterator[None]:
    def ring(*_: object) -> None:
        raise _TooLong

    before = signal.signal(signal.SIGALRM, ring)
    signal.setitimer(signal.ITIMER_REAL, _ALARM)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def tried(run: Callable[[bytes], None], data: bytes) -> Crash | None:
    """Return what an input broke, None where it did nothing wrong."""
    peak, began = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, time.process_time()
    try:
        with _alarm():
            try:
                run(data)
            except Broken:
                raise
            except Exception as error:
                failure = classify(error)
                if failure.status is ExitStatus.BUG or not isinstance(error, NeuronError | OSError):
                    raise
                need_printable([failure.message])
    except _TooLong:
        return Crash("endless", f"still running after {_ALARM:.0f} s")
    except Exception as error:  # noqa: BLE001  whatever it is, it is told
        trace, place = error.__traceback__, ""
        while trace is not None:
            code = trace.tb_frame.f_code
            if "/tests/fuzz/" not in code.co_filename and "site-packages" not in code.co_filename:
                place = f"{'/'.join(code.co_filename.split('/')[-3:])}:{code.co_name}"
            trace = trace.tb_next
        return Crash(f"{type(error).__name__} in {place}", str(error)[:300])
    took = time.process_time() - began
    grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - peak) >> 10
    if took > SECONDS:
        return Crash("slow", f"{took:.1f} s for {len(data):,} bytes")
    if grown > MEGABYTES:
        return Crash("large", f"{grown:,} MB for {len(data):,} bytes")
    return None


def need_printable(lines: Iterable[str]) -> None:
    """Raise Broken for text that would take command of a terminal."""
    for line in lines:
        bad = next((c for c in line if not c.isprintable() and c not in _ALLOWED), None)
        if bad is not None:
            raise Broken(f"control character {bad!r} in {line[:80]!r}")


def need_json(value: object) -> None:
    """Raise Broken for a value that is no JSON of the standard."""
    try:
        json.loads(json.dumps(value, allow_nan=False))
    except (TypeError, ValueError) as error:
        raise Broken(f"no JSON: {error}") from None
