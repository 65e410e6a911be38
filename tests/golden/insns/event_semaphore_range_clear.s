# 20 to 22 are cleared, their neighbours keep their 1.
.target trn2

.engine sp
    NOP S[19]++@complete cycle=0
    NOP S[20]++@complete cycle=0
    NOP S[21]++@complete cycle=0
    NOP S[22]++@complete cycle=0
    NOP S[23]++@complete cycle=0
    EVENT_SEMAPHORE_RANGE_CLEAR mode=SEMAPHORE_ZERO first=20 last=22
