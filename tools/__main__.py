"""`python -m tools [--check] [NAME...]`: renew what is generated, or fail where it is stale; `all` means everything."""

from __future__ import annotations

import argparse
import sys

from tools.generate import GENERATORS, apply, changes


def main(arguments: list[str] | None = None) -> int:
    """Run the generators that are named, the usual ones without a name; return 1 where --check finds a difference."""
    lines = [
        f"  {name.ljust(16)}{each.makes}{'' if each.usual else ' (when named)'}" for name, each in GENERATORS.items()
    ]
    parser = argparse.ArgumentParser(
        prog="python -m tools", description="Renew what is generated.", epilog="generators:\n" + "\n".join(lines),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )  # fmt: skip
    parser.add_argument("--check", action="store_true", help="change nothing; fail where something is stale")
    parser.add_argument("names", nargs="*", metavar="NAME", choices=[*GENERATORS, "all", []])
    wanted = parser.parse_args(arguments)
    chosen = [
        name
        for name, each in GENERATORS.items()
        if name in wanted.names or "all" in wanted.names or (each.usual and not wanted.names)
    ]
    stale = 0
    for change in changes(chosen):
        stale += 1
        print(f"{change.path}: {'stale' if wanted.check else 'removed' if change.data is None else 'written'}")
        if not wanted.check:
            apply(change)
    return 1 if stale and wanted.check else 0


if __name__ == "__main__":
    sys.exit(main())
