"""`neurontools compile cache`: list, check and clean the modules that a compile cache keeps."""
