
.target trn2

.engine sp
# As OPCODE_95.
    OPCODE_A1 S[5]++@complete
