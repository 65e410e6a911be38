"""`neurontools dbgstream`: tensors that programs print, as events of a debug stream: record, decode, follow."""
