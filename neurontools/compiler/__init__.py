"""`neurontools compile`: compile graphs of HLO to NEFFs, explain error codes, list operations."""
