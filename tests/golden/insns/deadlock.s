# Each waits for what the other one signals afterwards.
.target trn2

.engine dve
    NOP S[4]>=1 S[6]++@complete cycle=0

.engine act
    NOP cycle=0
    NOP S[6]>=1 S[4]++@complete cycle=0
