"""`neurontools profile --ranks`: where the time of several ranks goes, and who keeps whom waiting in collectives."""
