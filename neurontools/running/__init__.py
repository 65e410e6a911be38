"""`neurontools run`: execute scripts, assembler programs and NEFFs, and report what came of it."""
