"""`neurontools asm` and `disasm`: programs as text, both ways."""
