"""`neuronxcc`: the first generation of NKI, as public kernels of 2024 and 2025 import it.

Only `neuronxcc.nki` is here.  Its calls return tiles and take index expressions and masks; each becomes calls of
`neurontools.nki`, so traces, limits, files and results are those of the present generation.
"""

import logging

# AWS's package adds this level, and course kernels switch the compiler's messages off with it.
if not hasattr(logging, "OFF"):
    logging.OFF = logging.CRITICAL + 10  # type: ignore[attr-defined]
    logging.addLevelName(logging.CRITICAL + 10, "OFF")
