"""Enumerations of the first generation's ISA calls: those of the present one."""

from neurontools.nki.isa.constants import dge_mode, engine, matmul_perf_mode, oob_mode, reduce_cmd

__all__ = ["dge_mode", "engine", "matmul_perf_mode", "oob_mode", "reduce_cmd"]
