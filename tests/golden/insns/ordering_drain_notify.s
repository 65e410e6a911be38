# Words without effect but their signals; the loader drops OPCODE_CC, so five of six complete.
.target trn2

.engine sp
    OPCODE_CC
    SET_ORDERING_MODE S[5]++@complete ordering_mode=relaxed
    SET_ORDERING_MODE ordering_mode=strict
    NOTIFY S[5]++@complete hint=1 notification=EXPLICIT trace=START
    DRAIN S[5]++@complete
    NOP S[5]==3 S[6]++@complete cycle=0
