"""`nki.framework.compiled`: a kernel with the settings of a framework, compiled for the custom call of its graph."""

from __future__ import annotations

import dataclasses
from typing import Any

from neurontools.nki.graph_calls import ResultSpec, TracedCall, graph_call
from neurontools.nki.kernel import Kernel

__all__ = ["CompileKernel", "CompileOptions", "CompiledCall"]


class CompileOptions:
    """Options of AWS's pipeline, which this builder has no use for: all keep what they are called on."""

    def disable_backend_optimizations(self) -> CompileOptions:
        """Return the options."""
        return self

    def set_pipeline_options(self, *options: str) -> CompileOptions:
        """Return the options."""
        return self


class CompiledCall(TracedCall):
    """A kernel compiled for one set of shapes, by the names that frameworks read."""

    @property
    def backend_config_b64(self) -> str:
        """Return the configuration of the custom call."""
        return self._call.config

    @property
    def output_specs(self) -> list[ResultSpec]:
        """Return shape and type of each result."""
        return list(self._call.results)

    @property
    def is_tuple_return(self) -> bool:
        """Return whether the kernel returns a tuple or list."""
        return self._call.is_sequence

    def build_config(self) -> CompiledCall:
        """Return the configuration, which is there already."""
        return self


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class CompileKernel(Kernel):
    """A kernel for one target; frameworks subclass it for settings of their own."""

    lnc: int = 1
    target: str = "trn2"
    artifacts_dir: str = ""
    _enable_backend_opt: bool = False

    @staticmethod
    def _frontend_cls(enable_backend_opt: bool = False) -> None:
        """Return the front end, of which there is one."""
        return

    def _compile_opts(self) -> CompileOptions:
        return CompileOptions()

    def _cached_compile_to_bir(self, frontend: Any, inputs: dict[str, Any], compile_opts: Any) -> CompiledCall:
        """Trace the kernel for arguments by name."""
        grid = self.grid or ((self.lnc,) if self.lnc > 1 else ())
        kernel = Kernel(self.func, grid, **self.options)
        target = self.platform_target or self.target
        return CompiledCall(graph_call(kernel, (), inputs, target, self.artifacts_dir))

    def compile(self, inputs: dict[str, Any]) -> tuple[CompiledCall, str]:
        """Return the compiled call for arguments by name, and its configuration as what tells it from others."""
        made = self._cached_compile_to_bir(self._frontend_cls(), inputs, self._compile_opts())
        return made, made.backend_config_b64
