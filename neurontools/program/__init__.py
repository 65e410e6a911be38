"""Programs that can run: scripts, assembler programs, NEFFs, recordings; their inputs and how they are opened."""
