"""`neurontools profile`: show where the time of a program goes, and compare programs and what-ifs."""
