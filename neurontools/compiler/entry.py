"""The command line of neuronx-cc, as the executable of `neurontools shim` has it."""

from __future__ import annotations

import re
import sys

from neurontools.cli import main as neurontools_main
from neurontools.version import __version__

__all__ = ["main", "translated"]

# Takes any number of words; the real compiler's users write two.
_MANY = ("--pipeline",)
_IGNORED = re.compile(r"--internal-|--hbm-scratchpad-page-size|--disable-dge|--cc-pipeline-tiling-factor|--retry_|"
                      r"--no_cache|--log_level")  # fmt: skip
# Those of them that take no value: the word behind them is not theirs.
_FLAGS = ("--disable-dge", "--no_cache", "--retry_failed_compilation")
_KNOWN = ("--internal-tensorizer-opt-level", "--internal-hlo2tensorizer-options")


def translated(arguments: list[str]) -> list[str]:
    """Return a command line of neuronx-cc as one of neurontools; what has no meaning here is left out."""
    if not arguments or arguments[0] not in ("compile", "list-operators"):
        return ["compile", *arguments]
    if arguments[0] == "list-operators":
        return ["compile", "list-operators", *arguments[1:]]
    out = ["compile", "model"]
    rest = arguments[1:]
    while rest:
        word = rest.pop(0)
        if word in _MANY:
            stages = []
            while rest and rest[0] in ("compile", "tensorize", "SaveTemps"):
                stages.append(rest.pop(0))
            out += [word, "SaveTemps" if "SaveTemps" in stages else stages[0]] if stages else []
        elif _IGNORED.match(word) and not word.startswith(_KNOWN):
            if "=" not in word and rest and not rest[0].startswith("-") and word not in _FLAGS:
                rest.pop(0)
        else:
            out.append(word)
    return out


def main(arguments: list[str]) -> int:
    """Run one command line and return its status."""
    if arguments in (["--version"], ["version"]):
        print(f"NeuronX Compiler version 0.0.0+neurontools-{__version__}")
        return 0
    return neurontools_main(translated(arguments))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
