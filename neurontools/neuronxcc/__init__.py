"""`neuronxcc`: the first generation of NKI, as public kernels of 2024 and 2025 import it.

Only `neuronxcc.nki` is here.  Its calls return tiles and take index expressions and masks; each becomes calls of
`neurontools.nki`, so traces, limits, files and results are those of the present generation.
"""
