"""The time model against what AWS and others published: targets as data, kernels of our own, a report.

Every target says which row of `targets.csv` it is; which rows the figures of `emulator.cost` were fitted to, and which
only test them, was decided by `targets.held_out` before fitting.
"""
