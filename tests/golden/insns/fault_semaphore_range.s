# A semaphore holds 32 bits: 2^31 - 1 cannot count on.
.target trn2

.engine sp
    EVENT_SEMAPHORE setter=0 S[7]=2147483647@complete
    NOP S[7]++@complete cycle=0
