"""A line that tells a waiting person that work goes on; only on a terminal, only on standard error."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from neurontools.text.table import duration
from neurontools.text.visible import visible_line

__all__ = ["counting", "doing", "progress", "waiting"]

FIRST_SECONDS = 1.0  # nothing flickers by for work that is done at once
EVERY_SECONDS = 0.2
SOON_SECONDS = 0.4  # for what cannot say how far it is


@contextmanager
def progress(what: str) -> Iterator[Callable[[Any], None] | None]:
    """Give a function of the device that redraws one line; None where nobody watches."""
    if not sys.stderr.isatty():
        yield None
        return
    started = time.monotonic()
    due = started + FIRST_SECONDS
    drawn = False

    def tick(device: Any) -> None:
        nonlocal due, drawn
        now = time.monotonic()
        if now >= due:
            due, drawn = now + EVERY_SECONDS, True
            text = f"{visible_line(what)}: {duration(device.now_ps)} of device time in {now - started:.0f} s"
            print(f"\r\033[K{text}", end="", file=sys.stderr, flush=True)

    try:
        yield tick
    finally:
        if drawn:
            print("\r\033[K", end="", file=sys.stderr, flush=True)


@contextmanager
def counting(what: str, total: int, noun: str) -> Iterator[Callable[[Any], None] | None]:
    """Give a function to call once per thing done, which redraws one line; None where nobody watches."""
    if not sys.stderr.isatty():
        yield None
        return
    due = time.monotonic() + FIRST_SECONDS
    done, drawn = 0, False

    def tick(_: Any) -> None:
        nonlocal due, done, drawn
        done += 1
        now = time.monotonic()
        if now >= due:
            due, drawn = now + EVERY_SECONDS, True
            print(f"\r\033[K{visible_line(what)}: {done:,} of {total:,} {noun}s", end="", file=sys.stderr, flush=True)

    try:
        yield tick
    finally:
        if drawn:
            print("\r\033[K", end="", file=sys.stderr, flush=True)


@contextmanager
def doing(what: str) -> Iterator[Callable[[str], None] | None]:
    """Give a function that is told what is being done, which redraws one line; None where nobody watches."""
    if not sys.stderr.isatty():
        yield None
        return
    started = time.monotonic()
    due = started + FIRST_SECONDS
    drawn = False

    def tick(now_doing: str) -> None:
        nonlocal due, drawn
        now = time.monotonic()
        if now >= due or (drawn and now_doing.startswith("building")):
            due, drawn = now + EVERY_SECONDS, True
            text = f"{visible_line(what)}: {now_doing}, {now - started:.0f} s"
            print(f"\r\033[K{text}", end="", file=sys.stderr, flush=True)

    try:
        yield tick
    finally:
        if drawn:
            print("\r\033[K", end="", file=sys.stderr, flush=True)


@contextmanager
def waiting(what: str) -> Iterator[None]:
    """Say that something goes on, and for how long it has, while it cannot say how far it is."""
    if not sys.stderr.isatty():
        yield
        return
    started, over = time.monotonic(), threading.Event()

    def tick() -> None:
        wait = SOON_SECONDS
        while not over.wait(wait):
            wait = EVERY_SECONDS
            text = f"{visible_line(what)}, {time.monotonic() - started:.0f} s"
            print(f"\r\033[K{text}", end="", file=sys.stderr, flush=True)

    thread = threading.Thread(target=tick, name="waiting", daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()
        if time.monotonic() - started > SOON_SECONDS:
            print("\r\033[K", end="", file=sys.stderr, flush=True)
