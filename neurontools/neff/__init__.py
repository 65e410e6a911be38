"""`neurontools neff`: look into a NEFF, check it, take it apart and put it together."""
