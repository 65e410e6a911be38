"""`neurontools selftest`: run public test suites of operations against this toolkit, and report by group."""
