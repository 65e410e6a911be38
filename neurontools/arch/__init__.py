"""`neurontools arch`: show instances, chips and links, and how they are wired."""
