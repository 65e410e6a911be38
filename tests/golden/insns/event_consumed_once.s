# Two waits for one event: the second one, on the same engine, finds it cleared.
.target trn2

.engine act
    NOP E[3]+@complete cycle=0

.engine dve
    NOP E[3]==1- S[5]++@complete cycle=0
    NOP E[3]==1- S[5]++@complete cycle=0
