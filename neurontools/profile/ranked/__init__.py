"""`neurontools profile run --ranks`: where the time of ranks goes, and who keeps whom waiting in collectives."""
