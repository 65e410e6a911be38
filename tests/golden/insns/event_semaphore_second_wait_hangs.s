# The second wait holds the word although the first is satisfied.
.target trn2

.engine act
    NOP S[4]++@complete cycle=0

.engine dve
    EVENT_SEMAPHORE S[4]>=1 S[6]++@complete setter=0 S[5]>=1 S[7]+=5@complete
