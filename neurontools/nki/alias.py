"""Make `import nki` find this package: every `nki.x` is the very module `neurontools.nki.x`.

So are `neuronxcc.nki.x` of the first generation, and `nki_cpu_simulator.nki.x`, the name that nki-library's simulation
mode imports (nki.md 4.1).
"""

from __future__ import annotations

import importlib
import importlib.util
import sys
from collections.abc import Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType

__all__ = ["install", "uninstall"]

ALIAS = "nki"
REAL = "neurontools.nki"
CPU_SIMULATOR = "nki_cpu_simulator"
PACKAGES = {ALIAS: REAL, "neuronxcc": "neurontools.neuronxcc", CPU_SIMULATOR: f"{REAL}.cpu_simulator"}


class _AliasLoader(Loader):
    """Hand out a module that already exists under another name."""

    def __init__(self, real: str) -> None:
        self.real = real
        self._spec: ModuleSpec | None = None

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        module = importlib.import_module(self.real)
        self._spec = module.__spec__
        return module

    def exec_module(self, module: ModuleType) -> None:
        # The import system has put the alias's spec into the module; its own is what reload and pickle need.
        module.__spec__ = self._spec


class AliasFinder(MetaPathFinder):
    """Find `nki` and its submodules in this package."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Return the spec of a module that stands for ours, or None when we have none of that name."""
        package, _, rest = fullname.partition(".")
        if package not in PACKAGES:
            return None
        real = f"{PACKAGES[package]}.{rest}" if rest else PACKAGES[package]
        if package == CPU_SIMULATOR and rest:
            inner, _, rest = rest.partition(".")
            if inner != ALIAS:
                return None
            real = f"{REAL}.{rest}" if rest else REAL
        if real not in sys.modules and not _exists(real):
            return None
        return ModuleSpec(fullname, _AliasLoader(real), is_package=fullname in PACKAGES)


def _exists(real: str) -> bool:
    """Return whether there is a module; of a package that somebody else put under the alias we have none."""
    try:
        return importlib.util.find_spec(real) is not None
    except ModuleNotFoundError:
        return False


_FINDER = AliasFinder()


def _other_is_installed() -> bool:
    """Return whether an `nki` that is not ours is imported, or can be."""
    loaded = sys.modules.get(ALIAS)
    if loaded is not None:
        return loaded is not sys.modules.get(REAL)
    return any(
        finder.find_spec(ALIAS, None) is not None
        for finder in sys.meta_path
        if finder is not _FINDER and hasattr(finder, "find_spec")
    )


def install(override: bool = False) -> bool:
    """Make `import nki` give this package, and return whether it does now.

    Another `nki` that is installed stays in place unless `override`.
    """
    if _other_is_installed():
        if not override:
            return False
        for name in [one for one in sys.modules if one == ALIAS or one.startswith(ALIAS + ".")]:
            del sys.modules[name]
    if _FINDER not in sys.meta_path:
        sys.meta_path.insert(0, _FINDER)
    return True


def uninstall() -> None:
    """Undo `install`: forget the alias and its modules."""
    if _FINDER in sys.meta_path:
        sys.meta_path.remove(_FINDER)
        for name in [one for one in sys.modules if one.partition(".")[0] in PACKAGES]:
            del sys.modules[name]
