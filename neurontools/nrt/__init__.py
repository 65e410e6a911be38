"""nrtpy's names over the emulated runtime: models, tensors, benchmarks, one session in a process.

    from neurontools.nrt import NrtpyModel, NrtpyTensor

    model = NrtpyModel.load_from_neff("model.neff")
    outputs = model(inputs={"x": NrtpyTensor.from_numpy(array)})

Names, arguments and texts of errors are those of AWS's pages on nrtpy (runtime.md 11.4).
"""

from neurontools.nrt.errors import NrtError, NrtpyError
from neurontools.nrt.model import BenchmarkResult, NrtpyModel, TensorMetadata
from neurontools.nrt.singleton import NrtpyRuntime, configure, get_nrtpy_singleton, reset
from neurontools.nrt.tensor import NrtpyTensor, NrtTensor

__all__ = [
    "BenchmarkResult",
    "NrtError",
    "NrtTensor",
    "NrtpyError",
    "NrtpyModel",
    "NrtpyRuntime",
    "NrtpyTensor",
    "TensorMetadata",
    "configure",
    "get_nrtpy_singleton",
    "reset",
]
