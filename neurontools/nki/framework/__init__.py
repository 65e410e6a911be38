"""`nki.framework`: what frameworks import to put kernels into the graphs that they trace (compiler.md 5.7)."""
