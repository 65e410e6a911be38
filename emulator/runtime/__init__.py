"""The Neuron runtime over emulated devices: one execution of a file, or a session with models, tensors and queues.

`run` and `execute` load a file, execute it once and return what came out. `emulator.runtime.session` is the runtime as
libnrt shows it. Importing this loads only the first.
"""

from emulator.runtime.execution import Guard, Result, Stats, check_inputs, execute, new_device, run

__all__ = ["Guard", "Result", "Stats", "check_inputs", "execute", "new_device", "run"]
