"""Why a machine stands still: who waits for what, who could signal it, and the cause of each wait.

One value for a live device, a core dump, `check`, triage and the screen. Nothing here is imported before it is asked
for: `causes` and `graph` need neither NumPy nor the instruction set.
"""
