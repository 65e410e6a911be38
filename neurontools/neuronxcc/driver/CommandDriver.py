"""`neuronxcc.driver.CommandDriver`: the compiler's command line in this process."""

from __future__ import annotations

import sys

from neurontools.compiler.entry import main as compile_main

__all__ = ["main"]


def main() -> int:
    """Run the command line of `sys.argv`, as `neuronx-cc` does; SystemExit where it fails."""
    status = compile_main(sys.argv[1:])
    if status:
        raise SystemExit(status)
    return 0
