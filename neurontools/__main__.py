"""The program: `neurontools`, and `python -m neurontools`."""

from __future__ import annotations

import gc
import sys

__all__ = ["main"]

# A start makes a hundred thousand objects that all stay; from Python's 700 on they would be walked dozens of times.
_COLLECT_AFTER = 200_000


def main() -> int:
    """Run the command line of this process and return its exit status."""
    gc.set_threshold(_COLLECT_AFTER, 20, 20)
    from neurontools.cli import main as carry_out  # deferred: start-up

    status = carry_out()
    gc.freeze()  # nothing to find for the collection with which the interpreter ends
    return status


if __name__ == "__main__":
    sys.exit(main())
