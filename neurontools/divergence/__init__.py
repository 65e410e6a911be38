"""The first instruction whose result differs: between two executions, or from arrays known to be right."""
