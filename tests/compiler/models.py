"""The functions and arguments of the models in examples/models, without running them."""

from __future__ import annotations

import importlib.util
import runpy
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple
from unittest import mock

from formats.hlo import Module
from neurontools.compiler.jax_functions import lower

__all__ = ["MODELS", "Case", "cases"]

MODELS = ("decoder", "experts", "lstm", "mamba", "mlp", "resnet", "transformer")


class Case(NamedTuple):
    """One comparison of an example."""

    name: str
    fn: Callable[..., Any]
    args: tuple[Any, ...]

    def module(self) -> Module:
        """Return the function as JAX lowers it."""
        return lower(self.fn, self.args, {})[0]


def cases(root: Path, model: str) -> list[Case]:
    """Return what an example compares, each function once."""
    folder = root / "examples" / "models"
    spec = importlib.util.spec_from_file_location("compared", folder / "compared.py")
    assert spec is not None
    assert spec.loader is not None
    module: ModuleType = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    found: dict[Any, Case] = {}

    def note(name: str, fn: Callable[..., Any], *args: Any, **options: Any) -> None:
        found.setdefault(fn, Case(name, fn, args))

    module.compare = note  # type: ignore[attr-defined]
    with mock.patch.dict(sys.modules, {"compared": module}):
        runpy.run_path(str(folder / f"{model}.py"), run_name="__main__")
    return list(found.values())
