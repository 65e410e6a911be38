"""Generators of what is committed: manual pages, tables, screens, fixtures; run from a source tree (`python -m tools`).

Each is a module with `files()`: what it makes, by path below the root. One that has `OWNS`, a glob, has what else
matches it taken away.
"""
