"""`neurontools hlo`: look into an HLO module, check it, compare, order its collectives."""
