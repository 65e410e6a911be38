"""Profiles of emulated runs: where the time went, what made it so long, and what would make it shorter."""
