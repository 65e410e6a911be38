# S[4] went past 1 before anyone looked: a wait for equality never holds again.
.target trn2

.engine act
    NOP S[4]++@complete cycle=0
    NOP S[4]++@complete cycle=0
    NOP S[4]>=2 S[5]++@complete cycle=0

.engine dve
    NOP S[5]>=1 cycle=0
    NOP S[4]==1 S[6]++@complete cycle=0
