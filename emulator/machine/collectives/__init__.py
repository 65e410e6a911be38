"""Collective operations as programs of CC-cores: step lists, the choice among algorithms, their execution."""
