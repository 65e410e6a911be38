"""Where the Neuron compile cache lies, and how this compiler names what it keeps there. Source: compiler.md 5.5."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

__all__ = ["DEFAULT_ROOT", "key_of"]

DEFAULT_ROOT = Path("/var/tmp/neuron-compile-cache")


def key_of(module: bytes, options: dict[str, object]) -> str:
    """Return the name of an entry of this compiler, of a module's bytes and what `compile_flags.json` says."""
    graph = hashlib.sha256(module).hexdigest()[:20]
    flags = hashlib.sha256(json.dumps(options, sort_keys=True).encode()).hexdigest()[:8]
    return f"MODULE_{graph}+{flags}"
