"""libnrt.so.1 over the emulator: the C interface as data, what each function does, and how the library is built."""
