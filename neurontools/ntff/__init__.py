"""`neurontools ntff`: look into a profile capture (NTFF), and compare it with the emulator."""
