# A word whose meaning nobody has published is refused, not skipped.
.target trn2

.engine pool
    NOP S[5]++@complete cycle=0
    OPCODE_95 S[5]++@complete mode=1 address=0x0 bytes=0x0
