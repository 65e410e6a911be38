"""`neurontools check`: findings of the checks, as text, JSON, SARIF and JUnit."""
