"""`neurontools hlo tokens`: put the collectives of a module in a total order by tokens."""
