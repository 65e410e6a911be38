"""`neurontools cc`: plan, run, check, benchmark and break collective operations on emulated machines."""
