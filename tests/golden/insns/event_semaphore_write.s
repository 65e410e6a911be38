# The second update can set a semaphore: 3 after two increments, then -2, written as 2^32 - 2, added gives 1.
.target trn2

.engine sp
    NOP S[7]++@complete cycle=0
    NOP S[7]++@complete cycle=0
    EVENT_SEMAPHORE setter=0 S[7]=3@complete
    EVENT_SEMAPHORE setter=0 S[7]+=4294967294@complete
