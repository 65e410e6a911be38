"""`neurontools reference`: the facts that this project rests on, and where each of them comes from."""
