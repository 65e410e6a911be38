# Both waits must hold before the word starts; both updates happen at its end: S[6] + 1, S[7] + 5.
.target trn2

.engine act
    NOP S[4]++@complete cycle=0

.engine pool
    NOP S[5]++@complete cycle=0
    NOP S[5]++@complete cycle=0

.engine dve
    EVENT_SEMAPHORE S[4]>=1 S[6]++@complete setter=0 S[5]>=2 S[7]+=5@complete
