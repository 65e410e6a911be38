"""From loaded words to behaviour: memories, engines, DMA, semaphores, time. Importing this loads nothing heavy."""

import os

# Before NumPy is imported: beside other load, spinning BLAS threads make small products a hundred times slower, and
# one thread repeats sums from run to run.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
