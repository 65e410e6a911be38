"""`neurontools profile FILE --ranks 4`: where the time of ranks goes, and who keeps whom waiting in collectives."""
