"""The commands, one file each: arguments in, a library call, the result to `neurontools.render`."""
