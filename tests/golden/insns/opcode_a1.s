# As OPCODE_95: refused, because its meaning is not public.
.target trn2

.engine sp
    OPCODE_A1 S[5]++@complete
