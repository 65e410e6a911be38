# 1 - 1 - 1 = -1: semaphores are signed.
.target trn2

.engine pe
    NOP S[9]++@complete cycle=0
    NOP S[9]--@complete cycle=0
    NOP S[9]--@complete cycle=0
